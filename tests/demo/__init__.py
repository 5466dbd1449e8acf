"""A run to watch: `make demo`."""
