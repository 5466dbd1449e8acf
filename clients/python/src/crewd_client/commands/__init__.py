"""The commands of `crew`, one module for each group; loaded when they are used."""
