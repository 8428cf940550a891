"""What several tests share: a core for each, and a disk that fills up at once."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from utils.soak.mounting import NotHere, mounted
from utils.ui import stubs

hypothesis.settings.register_profile("shared machine", deadline=None)  # how long an example takes depends on the others
hypothesis.settings.load_profile("shared machine")

# Before torch comes: two tests run side by side, and the threads inside small layers wait longer than they work. The
# programs that tests start inherit it.
os.environ["OMP_NUM_THREADS"] = "1"

# Nine thousand tests and their libraries are millions of objects that stay: looking among them for something to free
# took a third of the time of collecting them.
gc.set_threshold(20_000, 50, 100)

stubs.leave_out()  # as the page does


def pytest_collection_finish() -> None:
    gc.freeze()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 512 KiB; needs the right to mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    try:
        with mounted(["-t", "tmpfs", "-o", "size=512k", "tmpfs"], folder):
            yield folder
    except NotHere as reason:
        pytest.skip(str(reason))
