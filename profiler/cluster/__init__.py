"""A Dask cluster as the place where work runs: the same children, asked by the cluster's workers."""
