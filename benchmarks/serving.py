"""Load the speech server with many callers at once: `python benchmarks/serving.py`.

The server is `python -m utils serve` with the tiny model, in a process of its own. Two rounds of requests are sent; the
first one warms up, and memory is compared before and after the second.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

import httpx2 as httpx
import numpy as np
import psutil

from benchmarks.record import hardware, save_table, table, today
from tools import random_model
from utils.core.paths import ROOT

TEXT = "go"
TITLE = "The speech server under load, tiny model"
HEAD = ["requests", "callers", "lost", "seconds", "median wait, s", "longest wait, s", "MB before", "MB after"]
PATIENCE = 900.0  # seconds for an answer


class Answer(NamedTuple):
    """How a request went."""

    status: int
    bytes: int
    seconds: float


def main() -> None:
    """Serve, ask and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200, help="requests of a round (200)")
    parser.add_argument("--callers", type=int, default=8, help="callers at the same time (8)")
    parser.add_argument("--results", type=Path, help="folder for the findings (none)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        model = random_model.build(Path(place) / "tiny")
        words = ["--model", str(model), "--port", "0", "--waiting", str(arguments.callers), "--precision", "fp32"]
        server = subprocess.Popen([sys.executable, "-m", "utils", "serve", *words], cwd=ROOT, stdout=subprocess.PIPE)
        try:
            row = measure(address(server), psutil.Process(server.pid), arguments.requests, arguments.callers)
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
    print(f"{hardware('cpu')}, {today()}\n\n{table(HEAD, [row])}")
    if arguments.results:
        save_table("serving", TITLE, HEAD, [row], arguments.results)
    if (lost := row[HEAD.index("lost")]) != "0":
        raise SystemExit(f"Answers were lost: {lost}.")


def address(server: "subprocess.Popen[bytes]") -> str:
    """Read where the server is, and wait until it has loaded its model."""
    assert server.stdout is not None  # for the type checker
    found = ""
    for line in server.stdout:
        text = line.decode()
        if " at http" in text:
            found = text.split(" at ")[1].split("/v1")[0]
        if text.strip().endswith("is ready."):
            return found
    raise SystemExit(f"The server ended with code {server.wait()}.")


def measure(url: str, process: psutil.Process, requests: int, callers: int) -> list[str]:
    """Send two rounds and return what came of the second."""
    round_of(url, requests // 4, callers)
    before = process.memory_info().rss
    begun = time.monotonic()
    answers = round_of(url, requests, callers)
    took = time.monotonic() - begun
    waited = np.array([answer.seconds for answer in answers])
    lost = sum(answer.status != httpx.codes.OK or not answer.bytes for answer in answers)
    times = [f"{seconds:.1f}" for seconds in (took, np.median(waited), waited.max())]
    memory = [f"{size / 1e6:.0f}" for size in (before, process.memory_info().rss)]
    return [str(requests), str(callers), str(lost), *times, *memory]


def round_of(url: str, requests: int, callers: int) -> list[Answer]:
    """Ask many times, some at once."""
    with httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as http, ThreadPoolExecutor(callers) as pool:
        return list(pool.map(lambda number: asked(http, number), range(requests)))


def asked(http: httpx.Client, number: int) -> Answer:
    """Ask for one sentence."""
    begun = time.monotonic()
    body = {"input": TEXT, "language": "en", "seed": number, "response_format": "pcm"}
    answer = http.post("/v1/audio/speech", json=body)
    return Answer(answer.status_code, len(answer.content), time.monotonic() - begun)


if __name__ == "__main__":
    main()
