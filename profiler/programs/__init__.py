"""Profiling of any program: count its launches, choose which to profile, run ncu over them."""
