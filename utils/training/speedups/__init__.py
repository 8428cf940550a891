"""What makes training faster or smaller: one switch a file, each returning what it changed or raising with a cure."""

from utils.core.change import Change
from utils.core.errors import SpeedupError

__all__ = ["Change", "SpeedupError"]
