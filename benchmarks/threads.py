"""How long a short text takes beside busy programs: `python benchmarks/threads.py [--rounds 3]`, whole command.

Three ways to wait, in turn: the workers of OpenMP spin between two products (the libraries' own default), sleep (what
the program sets before torch is loaded), or there is only one thread. Measured on an otherwise idle machine.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
SPINNING = "import sys, utils.__main__ as m; m.wait_passively = lambda: None; sys.exit(m.main(sys.argv[1:]))"
SLEEPING = "import sys, utils.__main__ as m; sys.exit(m.main(sys.argv[1:]))"
WAYS = {"spinning": (SPINNING, {}), "sleeping": (SLEEPING, {}), "one thread": (SPINNING, {"OMP_NUM_THREADS": "1"})}


def seconds(program: str, environment: dict[str, str], out: Path) -> float:
    """Speak a sentence with the embedded voice in a process of its own."""
    words = ["speak", "ሰላም ለዓለም፣ እንዴት ናችሁ?", "--model", "tiny", "--seed", "1", "--out", str(out)]
    began = time.perf_counter()
    command, variables = [sys.executable, "-c", program, *words], {**os.environ, **environment}
    subprocess.run(command, cwd=ROOT, env=variables, check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 2, 4], help="busy processes beside it")
    arguments = parser.parse_args()
    print("| busy processes |", *(f"{way} |" for way in WAYS))
    print("| --- |" + " --- |" * len(WAYS))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "spoken.wav")
        seconds(*WAYS["sleeping"], out)  # files are read once before anything counts
        for count in arguments.busy:
            others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
            taken: dict[str, list[float]] = {way: [] for way in WAYS}
            try:
                for _ in range(arguments.rounds):
                    for way, (program, environment) in WAYS.items():
                        taken[way].append(seconds(program, environment, out))
            finally:
                for other in others:
                    other.kill()
                    other.wait()
            print(f"| {count} |", *(f"{statistics.median(each):.1f} s |" for each in taken.values()), flush=True)


if __name__ == "__main__":
    main()
