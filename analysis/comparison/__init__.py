"""What changed between two launches: pairs, quantities, and the change of each."""
