"""Errors, paths, storage, events, addresses and languages: the base of every other package."""

VERSION = "2.0.0"
