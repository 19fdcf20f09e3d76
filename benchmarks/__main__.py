"""Entry point of ``python -m benchmarks``."""

from benchmarks.app import cli

if __name__ == "__main__":
    cli(prog_name="python -m benchmarks")
