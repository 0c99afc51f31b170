"""Tables of everything in reports, written as Parquet, CSV or JSON lines."""

TABLES = ("kernels", "metrics", "metrics_wide", "samples", "instructions", "lines")
