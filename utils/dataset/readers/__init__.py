"""Readers of the layouts in which people store speech with its text, one file each; see ``protocol``."""
