"""Theoretical occupancy: the calculator, its reasoning, advice, curves, and where configurations come from."""
