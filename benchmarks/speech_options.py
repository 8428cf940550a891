"""What the benchmarks of speech share: the model and machine that are asked for, and the page at the end."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.record import file_name, save, surroundings, table


def parser(description: str, *, codes: int, precisions: Sequence[str]) -> argparse.ArgumentParser:
    """Describe what can be asked for."""
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    found.add_argument("--layers", type=int, default=30, help="of the GPT (30)")
    found.add_argument("--dim", type=int, default=1024, help="width of the GPT (1024)")
    found.add_argument("--heads", type=int, default=16, help="heads of its attention (16)")
    found.add_argument("--codes", type=int, default=codes, help=f"codes of a sentence ({codes})")
    found.add_argument("--precisions", nargs="+", default=list(precisions), help=f"of ours ({' '.join(precisions)})")
    found.set_defaults(usual=list(precisions))
    found.add_argument("--rounds", type=int, default=2, help="rounds of each side in turn (2)")
    found.add_argument("--threads", type=int, default=2, help="threads of each side (2)")
    found.add_argument("--results", type=Path, help="folder for the findings (none)")
    return found


def conclude(
    name: str,
    page: str,
    arguments: argparse.Namespace,
    head: list[str],
    rows: list[list[str]],
    data: Mapping[str, object] | None = None,
    **more: object,
) -> None:
    """Show the page, and save it with further data where the findings shall go."""
    known = surroundings(arguments.device)
    filled = page.format(**{**vars(arguments), **more, **known, "table": table(head, rows)})
    print(filled)
    if arguments.results:
        size = f"{name}_{arguments.layers}x{arguments.dim}"
        usual = arguments.device == "cuda" or arguments.precisions == arguments.usual  # a GPU has others of its own
        others = [] if usual else arguments.precisions
        file = file_name("_".join([size, *others]), str(known["hardware"]), str(known["date"]))
        settings = {name: value for name, value in vars(arguments).items() if name not in {"results", "usual"}}
        found = known | {"settings": settings, "head": head, "rows": rows, **(data or {})}
        print(save(file, found, filled, arguments.results))
