"""The search for a stage's tile parameters: the search, and its worker on the GPU."""
