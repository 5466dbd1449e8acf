"""The imperative shell: it waits, commits and performs what `crewd.core` decides."""
