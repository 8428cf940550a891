"""Writes the tables of README and benchmarks/README.md and the plots: `python -m benchmarks.render [--check]`.

Everything is made from the files in benchmarks/results; a test fails when something is stale. Tables stand between
markers, and what is between them is never edited by hand.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import archive, plots
from benchmarks.archive import NOT_RECORDED, Finding
from benchmarks.claims import Claim, claims
from benchmarks.programs import BENCHMARKS, COQUI
from benchmarks.record import table
from benchmarks.training_findings import Comparison, SwitchTable
from benchmarks.training_report import comparison_table, switch_table
from utils.core.paths import ROOT
from utils.core.storage import write_atomically

PAGE, IMAGES = "benchmarks/README.md", "docs/images"
SPEED, MEMORY, SWITCHES = (f"{IMAGES}/benchmark-{name}.svg" for name in ("speed", "memory", "switches"))
NOT_YET = "no stored result"
ON_GPU = "python -m benchmarks --device cuda"


def rendered(root: Path = ROOT) -> dict[Path, str]:
    """Return every file that is made from results, with what it has to hold."""
    every = archive.findings()
    ours = claims(every, "cpu")
    readme = filled(root / "README.md", {"benchmarks": front_page(every)})
    page = filled(root / PAGE, {"programs": programs(every), "results": results_of(every)})
    pictures = {SPEED: plots.speed(ours), MEMORY: plots.memory(ours), SWITCHES: plots.switches(every)}
    return {root / "README.md": readme, root / PAGE: page} | {root / name: text for name, text in pictures.items()}


def stale(root: Path = ROOT) -> list[str]:
    """Return the names of the files that are not what the results say."""
    return [
        path.relative_to(root).as_posix()
        for path, text in rendered(root).items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]


def filled(path: Path, blocks: dict[str, str]) -> str:
    """Return a page whose blocks between markers are new."""
    text = path.read_text(encoding="utf-8")
    for name, block in blocks.items():
        begin, end = f"<!-- {name}: made by python -m benchmarks.render -->", f"<!-- {name}: end -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise SystemExit(f"{path} wants these two lines, one below the other: {begin} {end}")
        text = f"{before}{begin}\n{block.strip()}\n{end}{after}"
    return text


def front_page(every: Sequence[Finding]) -> str:
    """Return the claims of README, with what they were measured on."""
    there = claims(every, "cpu")
    parts = [claim_table(there), measured_on(there)]
    if on_gpu := claims(every, "cuda"):
        parts += [claim_table(on_gpu), measured_on(on_gpu)]
    else:
        parts.append(f"On a GPU: **not measured yet**, because no GPU was available. `{ON_GPU}` measures it.")
    pictures = [f"![{plots.SPEED_TITLE}]({SPEED})", f"![{plots.MEMORY_TITLE}]({MEMORY})"]
    return "\n\n".join([*parts, *pictures])


def claim_table(found: Sequence[Claim]) -> str:
    """Lay claims out, one a row."""
    rows = [
        [
            f"{claim.what}, {claim.unit}",
            claim.figure(claim.theirs),
            claim.figure(claim.ours),
            f"**{claim.told}**{claim.remark}",
            f"`{claim.command}`",
        ]
        for claim in found
    ]
    return table(["", f"{COQUI}, fp32", "this project", "ratio", "measured by"], rows).strip()


def measured_on(found: Sequence[Claim]) -> str:
    """Say on which machines, when and with which versions the programs measured."""
    places: dict[str, list[str]] = {}
    for one in {claim.finding.path.name: claim.finding for claim in found}.values():
        name = one.benchmark.replace("_", " ").replace("x", " x ")
        places.setdefault(surroundings(one), []).append(name)
    told = [f"{', '.join(names)} on {place}" for place, names in places.items()]
    return f"Measured: {'; '.join(told)}."


def surroundings(finding: Finding) -> str:
    """Name machine, date and versions; a file that does not hold its machine has it in its name."""
    versions = finding.told("software").replace(NOT_RECORDED, f"versions {NOT_RECORDED}")
    return f"{finding.data.get('hardware', finding.machine)}, {finding.date}, {versions}"


def programs(every: Sequence[Finding]) -> str:
    """List every benchmark with its command, its duration and its last result."""
    head = ["`--only`", "measures", "against", "command", "took", "last result"]
    rows = []
    for one in BENCHMARKS:
        last = archive.of(one, every)[:1]
        told = [duration(last[0]), f"[{last[0].date}](results/{last[0].page})"] if last else ["", NOT_YET]
        rows.append([one.name, one.measures, one.against, f"`{one.command}`", *told])
    return table(head, rows)


def duration(finding: Finding) -> str:
    """Write how long a program took, as far as its file tells."""
    if "took" in finding.data:
        return minutes(finding.data["took"])
    return NOT_RECORDED


def minutes(seconds: float) -> str:
    """Write a duration."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def results_of(every: Sequence[Finding]) -> str:
    """Show the last figures of every benchmark on every machine, and what was never measured."""
    parts = [
        f"### {one.name}\n\n{surroundings(finding)}; {links(finding)}.\n\n{figures(finding)}"
        for one in BENCHMARKS
        for finding in archive.of(one, every)
    ]
    missing = [f"- {one.name}: `{one.command}`" for one in BENCHMARKS if not archive.of(one, every)]
    return "\n\n".join([*parts, f"### {NOT_YET.capitalize()}", "\n".join(missing)])


def links(finding: Finding) -> str:
    """Lead to everything that a program wrote."""
    return f"[everything](results/{finding.page}), [as JSON](results/{finding.path.name})"


def figures(finding: Finding) -> str:
    """Lay the figures of a result file out."""
    data = finding.data
    if "coqui" in data:
        return comparison_table(Comparison.read(data)).strip()
    if "plan" in data:
        folded = f"<details><summary>every switch</summary>\n\n{switch_table(SwitchTable.read(data))}\n</details>"
        return f"![{plots.SWITCHES_TITLE}](../{SWITCHES})\n\n{folded}" if finding.device == "cpu" else folded
    return table(data["head"], data["rows"]).strip()


def main(words: Sequence[str] | None = None) -> int:
    """Write what is stale, or tell it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.render", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 when something is stale")
    arguments = parser.parse_args(words)
    names = stale()
    if not arguments.check:
        for path, text in rendered().items():
            write_atomically(path, text)
    for name in names:
        print(f"stale: {name}; run: python -m benchmarks.render" if arguments.check else f"written: {name}")
    return int(arguments.check and bool(names))


if __name__ == "__main__":
    sys.exit(main())
