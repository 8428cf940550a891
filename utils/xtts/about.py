"""What a model folder says of itself: where it comes from, and how far it learnt."""

from pathlib import Path
from typing import Any

from utils.core.storage import read_json
from utils.xtts.files import ABOUT_FILE


def read_about(folder: Path) -> dict[str, Any]:
    """Read what a finished model says of itself; nothing depends on it, so a damaged file says nothing."""
    try:
        about = read_json(folder / ABOUT_FILE)
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}
