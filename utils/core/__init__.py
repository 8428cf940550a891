"""Errors, paths, storage, events and languages: what every other package builds on."""
