"""A whole program: where its time goes, what its launches are to one another, and what to change in it first."""
