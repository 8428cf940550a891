"""Checks on a GPU machine without a registry; see README.md."""
