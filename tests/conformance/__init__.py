"""All clients do the same: `make conformance`."""
