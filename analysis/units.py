"""How Nsight Compute scales and rounds numbers for its details page; pages and tables use the same."""
