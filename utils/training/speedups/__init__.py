"""Optimizations of speed and memory: one per file. Each returns what it changed, or raises an error with a hint."""

from utils.core.change import Change
from utils.core.errors import SpeedupError

__all__ = ["Change", "SpeedupError"]
