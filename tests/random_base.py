"""The random model that tests train."""

import functools
import os
import tempfile
from pathlib import Path

from testing import random_model


@functools.cache
def random_base() -> str:
    """Return its folder, which stays on this computer: it is built once, and again when its recipe changes."""
    return str(random_model.build(Path(tempfile.gettempdir()) / f"amharic-xtts-tests-{os.getuid()}" / "random"))
