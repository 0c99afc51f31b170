"""Tables of everything in reports, written as Parquet, CSV or JSON lines."""
