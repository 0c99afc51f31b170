"""Thousands of reports as one data set: read once, kept as Parquet, asked through Arrow."""
