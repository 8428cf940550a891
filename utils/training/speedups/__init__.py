"""Optimizations of speed and memory. Each returns what it changed, or raises an error with a hint."""
