"""Reads reports and explains kernels: one pure module an analysis, no GPU, no torch, no HTML."""
