"""What a launch asks of the GPU, and the time model over it."""
