"""The run directory: what is in it, and whether it is whole."""
