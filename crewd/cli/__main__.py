"""`python -m crewd.cli` is `crewd`."""

from __future__ import annotations

from crewd.cli import main

if __name__ == "__main__":
    main()
