"""Run the benchmarks one by one: `python -m benchmarks [--only NAME…] [--list] [--toy] [--device cuda] [--busy N…]`.

Each is a program of its own. One that fails does not keep the others from running; it is named at the end.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import product
from pathlib import Path

from benchmarks.record import RESULTS
from utils.core.paths import ROOT

PROGRAMS = {  # by name: what is typed; those for a GPU end with -gpu
    "training": "training.py --clips 32",
    "training-12x768": "training.py --layers 12 --dim 768 --clips 16 --rounds 2",
    "training-30x1024": "training.py --layers 30 --dim 1024 --batch 2 --clips 4 --rounds 2 --sequential",
    "speech": "speech.py",
    "speech-small": "speech.py --layers 6 --dim 512",
    "decoding": "decoding.py --layers 6 --dim 512",
    "serving": "serving.py --seconds 600",
    "training-gpu": "training.py --device cuda --layers 30 --dim 1024 --rounds 7",
    "speech-gpu": "speech.py --device cuda --precisions fp32 fp16 --sentences 32",
    "decoding-gpu": "decoding.py --device cuda --precisions fp32 fp16",
}
LITTLE = "--layers 1 --dim 64 --threads 1 --rounds 1"
TOYS = {  # the smallest sizes, given after the others: these show that something works, not how fast it is
    "training.py": f"{LITTLE} --clips 4 --batch 2 --updates 1",
    "speech.py": f"{LITTLE} --codes 24 --sentences 2",
    "decoding.py": f"{LITTLE} --codes 8 --sentences 1 2",
    "serving.py": "--seconds 5 --callers 2",
}


def main() -> int:
    """List or run the benchmarks; the exit status is 1 when one failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, metavar="NAME", help="only these; --list names them")
    parser.add_argument("--list", action="store_true", help="name them and their commands, and run nothing")
    parser.add_argument("--toy", action="store_true", help="tiny sizes: shows that all work, and measures nothing")
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cpu", help="run the benchmarks for this device (cpu)"
    )
    parser.add_argument(
        "--busy", type=int, nargs="+", default=[0], help="run each beside this many busy processes, such as 0 2 (0)"
    )
    parser.add_argument("--results", type=Path, help="folder for the findings (benchmarks/results; for toys a new one)")
    options = parser.parse_args()
    if options.list:
        print(*(f"{name:20}python benchmarks/{words}" for name, words in PROGRAMS.items()), sep="\n")
        return 0
    folder = options.results or (Path(tempfile.mkdtemp(prefix="benchmarks-toy-")) if options.toy else RESULTS)
    on_gpu = options.device == "cuda"
    told = []
    names = options.only or [name for name in PROGRAMS if name.endswith("-gpu") == on_gpu]
    for name, busy in product(names, options.busy):
        place = folder / f"busy-{busy}" if busy else folder
        program, *words = PROGRAMS[name].split()
        words += TOYS[program].split() if options.toy else []
        command = [sys.executable, f"benchmarks/{program}", *words, "--results", str(place.resolve())]
        print(f"\n=== {name}, {busy} busy: {shlex.join(command[1:])}", flush=True)
        began = time.monotonic()
        with ExitStack() as others:
            for _ in range(busy):
                other = others.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
                others.callback(other.kill)  # before it is waited for
            status = subprocess.run(command, cwd=ROOT, check=False).returncode
        result = f"FAILED with {status}" if status else "done"
        told.append(f"{name:20}{busy:2} busy  {result:18}{time.monotonic() - began:8.0f} s")
    print("", *told, f"\nFindings: {folder}", sep="\n")
    return int(any("FAILED" in line for line in told))


if __name__ == "__main__":
    sys.exit(main())
