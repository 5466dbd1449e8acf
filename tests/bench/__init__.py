"""What must be fast, measured: `make bench`."""
