"""Reads Nsight Compute reports into plain values: frame, messages, metrics, sources, and the native worker."""
