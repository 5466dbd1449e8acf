"""crewd: the local daemon that runs crews of agents."""

__version__ = "0.1.0"
