"""Runs the stages on a GPU: checks, operands, verification, timing, Nsight Compute, and the run directory."""
