"""Optimizations of speed and memory. Each returns what it changed, or raises an error with a hint."""

from utils.core.errors import SpeedupError
from utils.core.events import Change

__all__ = ["Change", "SpeedupError"]
