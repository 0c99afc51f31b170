"""What every room shares: errors, files, text, expressions."""
