"""Modules that import what a mode would import while it compiles its first function."""
