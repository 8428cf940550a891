"""The embedded voice: a small XTTS that is taught Amharic from nothing, by synthetic speech and this project's code."""
