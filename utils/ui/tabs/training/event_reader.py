"""Reads the events of runs a little at a time: a log may be a gigabyte, a look never is.

Whoever watches keeps an offset and the thinned curves of each run, so that a look costs only what is new.
"""

import threading
import time
from collections import OrderedDict
from pathlib import Path

from utils.core.events import BLOCK, parse_line, read_block, tail_offset
from utils.runs import Run
from utils.ui.tabs.training.run_history import Story

MOST_RUNS = 40  # that are kept in mind
READ_WHOLE = 8 * BLOCK  # beyond that, only every so many updates are looked at
BUDGET = 0.12  # seconds of a look
TRAIN_MARK = b'"kind": "train"'


class Follower:
    """Reads the events of one run from where it stopped.

    Args:
        path: Its events.jsonl.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.offset, self.story = path, 0, Story()
        self._passed = 0

    def read_on(self, budget: float = BUDGET) -> Story:
        """Read what is new for as long as the budget lasts, one block at least."""
        size = tail_offset(self.path, 0)
        if size < self.offset:
            self.offset, self.story = 0, Story()  # another file has taken its place
        deadline = time.monotonic() + budget
        stride = max(1, (size - self.offset) // READ_WHOLE)
        while self._take_block(stride) and time.monotonic() < deadline:
            pass
        self.story.read = min(1.0, self.offset / size) if size else 1.0
        return self.story

    def _take_block(self, stride: int) -> bool:
        """Take one block of whole lines; tell whether there may be more."""
        block = read_block(self.path, self.offset, BLOCK)
        whole = block.rfind(b"\n") + 1
        if not whole and len(block) == BLOCK:
            whole = BLOCK  # no event of ours is so long
        for line in block[:whole].split(b"\n"):
            if stride > 1 and TRAIN_MARK in line:
                self._passed += 1
                if self._passed % stride:
                    continue
            if (event := parse_line(line)) is not None:
                self.story.take(event)
        self.offset += whole
        return whole > 0


class Watcher:
    """Keeps what was read of each run, for every visitor of the page."""

    def __init__(self) -> None:
        self._followers: OrderedDict[Path, Follower] = OrderedDict()
        self._lock = threading.Lock()

    def look(self, run: Run) -> Story:
        """Read what is new of a run."""
        with self._lock:
            follower = self._followers.pop(run.folder, None) or Follower(run.events)
            self._followers[run.folder] = follower
            while len(self._followers) > MOST_RUNS:
                self._followers.popitem(last=False)
            return follower.read_on().snapshot()
