"""Everything that a terminal shows: rich tables, and the records behind --json."""
