"""Which files are meant, and which launches in them."""
