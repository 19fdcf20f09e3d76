"""Workloads that set each mode beside code written by hand; see ``python -m benchmarks --help``."""
