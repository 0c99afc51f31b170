"""Where work runs: a child on this machine's GPU, one on each of several, or a cluster. Who asks does not care."""
