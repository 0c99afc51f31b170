"""Nsight Compute's file format: blocks, wire format, messages."""
