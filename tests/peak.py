"""The memory that a process has needed at most, for programs that tests start."""

import re
from pathlib import Path


def peak_mb() -> int:
    """Read this process's own peak; ``ru_maxrss`` would begin with the peak of whoever started it."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    assert found, "only Linux tells"
    return int(found[1]) // 1024
