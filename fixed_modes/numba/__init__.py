"""The Numba back end: one graph becomes one module of generated source."""
