"""The analyses: one module a section of a page."""
