"""HTML: which pages there are, what their sections show, and the notebook's partials."""
