"""Is a kernel right, and how long does it take: operands, verification, timing."""
