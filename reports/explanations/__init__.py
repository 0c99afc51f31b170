"""One explanation in every form: text for a terminal, Markdown, JSON, HTML."""
