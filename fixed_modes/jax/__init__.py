"""The JAX back end: whatever is concrete while tracing is computed at once."""
