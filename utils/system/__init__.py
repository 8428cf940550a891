"""Check this computer."""
