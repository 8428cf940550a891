"""How a finding is written down, so that it can be believed later: machine, versions, command, date, duration."""

import datetime as dt
import json
import os
import platform
import re
import shlex
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from utils.core.storage import write_atomically

RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "torch",
    "transformers",
    "coqui-tts",
    "accelerate",
    "onnxruntime",
    "epitran",
)  # whose versions decide about the figures


def save(name: str, data: object, page: str, folder: Path = RESULTS) -> Path:
    """Write a finding as JSON and as Markdown, and return the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{name}.json", json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    write_atomically(folder / f"{name}.md", page)
    return folder / f"{name}.md"


def surroundings(device: str) -> dict[str, object]:
    """Return what has to stand beside every figure; ``took`` is the seconds since this program was started."""
    return {
        "device": device,
        "hardware": hardware(device),
        "software": software(),
        "command": typed(),
        "date": today(),
        "took": round(time.time() - psutil.Process().create_time(), 1),
    }


def file_name(benchmark: str, machine: str, date: str) -> str:
    """Return the name of a finding's files: what was measured, on which machine, when."""
    return f"{benchmark}_{slug(machine)}_{date}"


def save_table(benchmark: str, title: str, head: list[str], rows: list[list[str]], folder: Path) -> Path:
    """Write a finding that is one table, measured on the processor, and return the page's path."""
    known = surroundings("cpu")
    name = file_name(benchmark, hardware("cpu"), today())
    where = "{hardware}, {date}, {software}.\nCommand: `{command}`".format(**known)
    page = f"# {title}\n\n{where}\n\n{table(head, rows)}"
    return save(name, known | {"head": head, "rows": rows}, page, folder)


def table(head: list[str], rows: list[list[str]]) -> str:
    """Lay cells out as Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines) + "\n"


def hardware(device: str) -> str:
    """Name what is computed on."""
    if device == "cuda":
        import torch

        return torch.cuda.get_device_name()
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", info.read_text(encoding="utf-8")) if info.is_file() else None
    name = found[1].strip() if found else platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores"


def slug(name: str) -> str:
    """Write a name as a part of a file name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def today() -> str:
    """Return the date here."""
    return dt.datetime.now().astimezone().date().isoformat()


def typed() -> str:
    """Return the command that was typed, without the folder of this machine that the findings go to."""
    words = [f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]
    if "--results" in words:
        del words[(place := words.index("--results")) : place + 2]
    return shlex.join(["python", *words])


def software() -> str:
    """Name the versions that decide about the figures."""
    found = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)
