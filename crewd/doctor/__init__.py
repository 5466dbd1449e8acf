"""What `crewd doctor` looks at by itself, whether a daemon runs or not.

One module for each area; a check is a function from a place to what it found there. What only the
daemon knows it tells by `DaemonService.Diagnose`.
"""
