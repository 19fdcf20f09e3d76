"""``python -m fixed_modes``: the command line."""

from __future__ import annotations

from fixed_modes.cli.app import main

if __name__ == "__main__":
    main()
