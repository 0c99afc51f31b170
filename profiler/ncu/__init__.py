"""Nsight Compute as a process: its command line, its sections, its errors, and what a killed one leaves."""
