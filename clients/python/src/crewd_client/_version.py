"""The version of this package, without the cost of reading its metadata."""

__version__ = "0.1.0"
