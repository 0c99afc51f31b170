"""What our own stages should do: access patterns and traffic from tile sizes, beside what was measured."""
