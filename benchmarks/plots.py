"""The plots of README and benchmarks/README.md."""

from collections.abc import Sequence

from benchmarks import archive
from benchmarks.archive import Finding
from benchmarks.bars import Bar, chart
from benchmarks.claims import PEAK_MEMORY, PEAK_SPEAKING, Claim
from benchmarks.programs import COQUI, named
from benchmarks.training_findings import SwitchTable

SPEED_TITLE, MEMORY_TITLE = f"Speedup over {COQUI}", f"Peak memory compared with {COQUI}"
SWITCHES_TITLE = "Training speed with one switch changed"


def speed(found: Sequence[Claim]) -> str:
    """Draw how many times as fast ours is."""
    fast = [claim for claim in found if not claim.is_memory]
    bars = [Bar(claim.what, claim.gain, claim.told, "ours") for claim in fast]
    return chart(SPEED_TITLE, f"dashed line: {COQUI}, 1 x; {dated(fast)}", bars, reference=1)


def memory(found: Sequence[Claim]) -> str:
    """Draw the peaks of both sides."""
    most = [claim for claim in found if claim.what.endswith((PEAK_MEMORY, PEAK_SPEAKING))]
    bars = []
    for claim in most:
        name, _, _ = claim.what.rpartition(": ")
        bars.append(Bar(name, claim.ours, f"{claim.told}: {claim.ours:.0f} MiB", "ours"))
        bars.append(Bar(COQUI, claim.theirs, f"{claim.theirs:.0f} MiB", "theirs"))
    return chart(MEMORY_TITLE, dated(most), bars)


def switches(every: Sequence[Finding]) -> str:
    """Draw what each training switch does to the speed."""
    finding = archive.of(named("switches"), every)[0]
    rows = [row for row in SwitchTable.read(finding.data).rows if row.speed]
    bars = [
        Bar(row.name, row.speed or 0.0, f"{row.speed:.2f} x", "theirs" if row.name == "baseline" else "ours")
        for row in rows
    ]
    note = f"dashed line: the defaults beside them, 1 x; how far the grey bar is from it is noise; {finding.date}"
    return chart(SWITCHES_TITLE, note, bars, reference=1)


def dated(found: Sequence[Claim]) -> str:
    """Name the machines and dates of claims."""
    return "; ".join(sorted({f"{claim.finding.machine}, {claim.finding.date}" for claim in found}))
