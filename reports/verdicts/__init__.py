"""What a comparison says, for people and for machines."""
