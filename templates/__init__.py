"""jinja2 pages and partials, one CSS, small JavaScript files; no numbers of their own."""
