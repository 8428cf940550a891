"""The base models that come with the program, beside the published versions of XTTS v2."""

from pathlib import Path

from utils.core.paths import TINY_MODEL

TINY = "tiny"  # the embedded voice
TINY_RANDOM = "tiny-random"  # the same classes with random weights, made in a second
BUILT_IN = (TINY, TINY_RANDOM)  # they need neither a download nor somebody's licence


def now_at(base: Path) -> Path:
    """Return where a base lies that lay there once: the embedded voice moves with the program."""
    return TINY_MODEL if base.name == TINY and not base.is_dir() else base
