"""What the machine code says: instructions, loops, latencies, who waits for whom."""
