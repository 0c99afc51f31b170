"""How every figure on a page is computed, and from which metrics."""
