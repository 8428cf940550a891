"""Diagnostics of this computer."""
