"""The store of a history: records that are only ever added, compacted by series, with an index beside them."""
