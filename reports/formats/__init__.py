"""What every ``--json`` prints, declared field by field: the source of its documentation, and tested."""
