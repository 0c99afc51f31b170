"""Turns analyses into HTML, figures, terminal tables and data files."""
