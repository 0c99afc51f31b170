"""Pictures: matplotlib figures and hand-made SVG."""
