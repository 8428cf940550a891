"""Run every check in order of value, each under its own time limit; after each, everything found so far is in $OUT.

The first group tests that things work and counts memory, so its parts run side by side; the second measures time, one
part after the other. GO_SECONDS is the time for all (530); GO_DEVICE=cpu with GO_TOY=1 rehearses without a GPU.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from benchmarks.__main__ import TOYS

OUT = Path(os.environ["OUT"])
DEVICE, TOY = os.environ.get("GO_DEVICE", "cuda"), bool(os.environ.get("GO_TOY"))
DEADLINE = time.monotonic() + float(os.environ.get("GO_SECONDS", "530"))
SCALE = float(os.environ.get("GO_SCALE", "1"))  # of every limit, for a slow machine
PY, GPU = sys.executable, DEVICE == "cuda"
SIZES = {  # of the benchmarks
    "training.py": "--layers 30 --dim 1024 --clips 32 --rounds 2 --updates 4 --threads 8",
    "speech.py": "--sentences 8 --rounds 2 --threads 8",
    "decoding.py": "--sentences 1 8 16 --rounds 2 --threads 8",
}
KINDS = f"--precisions fp32{' bf16 fp16' if GPU else ''}".split()


def part(name: str, seconds: int) -> list[str]:
    limit = str(seconds * SCALE)
    return [PY, "-m", "tools.gpu.measure", name, "--device", DEVICE, "--seconds", limit, *(["--toy"] if TOY else [])]


def bench(program: str, *words: str) -> list[str]:
    size = (TOYS if TOY else SIZES)[program].split()
    return [PY, f"benchmarks/{program}", *size, "--device", DEVICE, "--results", f"{OUT}/found", *words]


TESTS = f"-m pytest -n 0 -m gpu -q -p no:cacheprovider{'' if GPU else ' --collect-only'}".split()
TOGETHER = [  # name, limit in seconds, command
    ("versions", 60, part("versions", 60)),
    ("certificate", 200, [PY, "-m", "utils", "doctor", "--gpu", DEVICE]),
    ("gpu tests", 150, [PY, *TESTS, "tests/training", "tests/speech", "tests/xtts"]),
    ("resume", 170, part("resume", 100)),
    ("out of memory", 120, part("oom", 90)),
    ("memory plan", 150, part("memory", 120)),
]
ONE_BY_ONE = [
    ("training sweep", 110, part("sweep", 90)),
    ("speech sweep", 80, part("speech", 70)),
    ("training and plain coqui", 110, bench("training.py")),
    ("speech and plain coqui", 90, bench("speech.py", *KINDS)),
    ("decoding and plain coqui", 50, bench("decoding.py", *KINDS)),
]
summary: list[str] = []


def write(name: str, log: Path, code: object, seconds: float) -> None:
    """Add what a step has written to the log, the results and the summary."""
    text = log.read_text(errors="replace") if log.exists() else ""
    with (OUT / "log.txt").open("a") as file:
        file.write(f"\n===== {name}: {code}, {seconds:.0f} s\n{text[-60_000:]}")
    lines = text.splitlines()
    found = [line[7:] for line in lines if line.startswith("RESULT ")]
    with (OUT / "results.jsonl").open("a") as file:
        file.writelines(json.dumps({"step": name, **json.loads(line)}) + "\n" for line in found)
    tables = [line for line in lines if re.match(r"\||FAILED|ERROR|E  |.* (passed|failed)", line)]
    errors = [line for line in lines if "Error" in line][-3:] if code else []
    summary.extend([f"\n## {name}: {'ok' if code == 0 else code}, {seconds:.0f} s", "", *found, *tables[:60], *errors])
    (OUT / "summary.md").write_text("\n".join(summary) + "\n")
    print(f"{name:28} {code!s:10} {seconds:6.0f} s", flush=True)


def start(name: str, command: list[str]) -> tuple[subprocess.Popen[bytes], Path, float]:
    log = OUT / "parts" / f"{name.replace(' ', '_')}.log"
    log.parent.mkdir(exist_ok=True)
    path = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": path}
    if not GPU:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    output = log.open("w")
    child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True, env=environment)
    return child, log, time.monotonic()


def end(name: str, child: subprocess.Popen[bytes], log: Path, began: float, limit: float) -> None:
    until = min(began + limit * SCALE, DEADLINE)
    try:
        code: object = child.wait(max(0.1, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        code = "TIMEOUT"
    write(name, log, code, time.monotonic() - began)


def main() -> None:
    only = set(filter(None, os.environ.get("GO_ONLY", "").split(",")))
    chosen = [[s for s in group if not only or s[0] in only] for group in (TOGETHER, ONE_BY_ONE)]
    wide = 1 if os.environ.get("GO_SERIAL") else len(chosen[0]) or 1
    for first in range(0, len(chosen[0]), wide):
        begun = [(n, limit, *start(n, c)) for n, limit, c in chosen[0][first : first + wide]]
        for name, limit, child, log, began in begun:
            end(name, child, log, began, limit)
    for name, limit, command in chosen[1]:
        if DEADLINE - time.monotonic() < 15:
            write(name, Path("/nowhere"), "no time left", 0)
            continue
        end(name, *start(name, command), limit)
    for certificate in Path("output").rglob("gpu-certificate.md"):
        shutil.copyfile(certificate, OUT / "certificate.md")
    with tarfile.open(OUT / "parts.tgz", "w:gz") as archive:
        for folder in filter(Path.exists, (OUT / "parts", OUT / "found")):
            archive.add(folder, folder.name)
            shutil.rmtree(folder)
    print((OUT / "summary.md").read_text()[-9000:])


if __name__ == "__main__":
    main()
