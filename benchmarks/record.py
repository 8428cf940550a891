"""How a finding is written down, so that it can be believed later: machine, versions, command, date, duration."""

import argparse
import contextlib
import datetime as dt
import json
import os
import platform
import re
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from utils.core.storage import write_atomically

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("torch", "transformers", "coqui-tts", "accelerate", "onnxruntime", "epitran")  # that decide about figures


def parser(description: str, *, layers: int, dim: int, rounds: int) -> argparse.ArgumentParser:
    """Describe what every comparison can be asked for."""
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    found.add_argument("--layers", type=int, default=layers, help=f"of the GPT ({layers})")
    found.add_argument("--dim", type=int, default=dim, help=f"width of the GPT ({dim})")
    found.add_argument("--threads", type=int, default=2, help="threads of each side (2)")
    found.add_argument("--rounds", type=int, default=rounds, help=f"rounds of each side in turn ({rounds})")
    found.add_argument("--results", type=Path, help="folder for the findings (none)")
    return found


def conclude(
    name: str, page: str, options: argparse.Namespace, head: list[str], rows: list[list[str]], **data: object
) -> None:
    """Show a page with its table and, where the findings shall go to a folder, save both with further data there."""
    device = getattr(options, "device", "cpu")
    known = {
        "device": device,
        "hardware": hardware(device),
        "software": software(),
        "command": typed(),
        "date": dt.datetime.now().astimezone().date().isoformat(),
        "took": round(time.time() - psutil.Process().create_time(), 1),  # seconds since this program was started
    }
    title, _, text = page.format(**{**vars(options), **data}).partition("\n")
    where = "{hardware}, {date}, {software}.\nCommand: `{command}`".format(**known)
    shown = f"# {title}\n\n{where}\n{text}\n{table(head, rows)}"
    print(shown)
    if options.results:
        settings = {option: value for option, value in vars(options).items() if option != "results"}
        found = json.dumps(
            known | {"settings": settings, "head": head, "rows": rows} | data, indent=2, ensure_ascii=False
        )
        machine = re.sub(r"[^a-z0-9]+", "-", str(known["hardware"]).lower()).strip("-")
        path = options.results / f"{name}_{machine}_{known['date']}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, shown)
        write_atomically(path.with_suffix(".json"), found + "\n")
        print(path)


def table(head: list[str], rows: list[list[str]]) -> str:
    """Lay cells out as Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines) + "\n"


def row(label: str, values: Sequence[float], form: str, ratio: Callable[[float, float], str]) -> list[str]:
    """Write the value of coqui, then each of ours with its ratio."""
    cells = [label, format(values[0], form)]
    for value in values[1:]:
        cells += [format(value, form), ratio(values[0], value)]
    return cells


def times(base: float, value: float) -> str:
    """Write how many times as large a value is."""
    return f"{value / base:.2f} x"


def faster(base: float, value: float) -> str:
    """Write how many times faster a time is."""
    return times(value, base) if value else ""


def share(base: float, value: float) -> str:
    """Write which share of the base a value is."""
    return f"{value / base:.0%}"


def difference(base: float, value: float) -> str:
    """Write by how much a value differs."""
    return f"{value / base - 1:+.2%}"


def hardware(device: str) -> str:
    """Name what is computed on."""
    if device == "cuda":
        import torch

        return torch.cuda.get_device_name()
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", info.read_text(encoding="utf-8")) if info.is_file() else None
    name = found[1].strip() if found else platform.machine()
    return f"{name}, {os.cpu_count()} cores"


def software() -> str:
    """Name the versions that decide about the figures."""
    found = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{name} {version(name)}")
    return ", ".join(found)


def typed() -> str:
    """Return the command that was typed, without the folder of this machine that the findings go to."""
    words = [f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]
    if "--results" in words:
        del words[(place := words.index("--results")) : place + 2]
    return shlex.join(["python", *words])
