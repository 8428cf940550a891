"""Load the speech server with callers at random times: `python benchmarks/serving.py --seconds 60`.

The server is `python -m utils serve` in a process of its own. Each caller waits a random time, sends a phrase, a
sentence or a long text, and reads the stream to its end. Afterwards, some requests are sent again one by one, to
compare the audio. With `--trees . OTHER`, servers of several source trees take turns, `--rounds` times. Callers
without a pause (`--pause 0`) show the throughput.
"""

import argparse
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

import httpx2 as httpx
import numpy as np
import psutil

from benchmarks.record import hardware, save_table, table, today
from utils.core.paths import ROOT
from utils.media.rates import OUTPUT_RATE

PHRASE, SENTENCE = "ሰላም።", "ዛሬ ጠዋት ወደ ገበያ ሄጄ ቡና እና ዳቦ ገዛሁ።"
TEXTS = {"phrase": PHRASE, "sentence": SENTENCE, "long text": f"{SENTENCE} ነገ ደግሞ እንገናኛለን። " * 6}
WEIGHTS = (6, 3, 1)  # how often each is sent
COMPARED = 20  # requests that are sent again
NEAR = 40  # of 32,768: a chunk's gain follows the loudness, so a rounding error grows
MEMORY = ["MB loaded", "after 1/5", "2/5", "3/5", "4/5", "5/5"]  # median of each fifth of a round
TITLE = "The speech server with callers at random times"
HEAD = ["server", "text", "requests", "lost", "first sound, s: median", "95 %", "whole, s: median", "95 %"]
TOTALS = ["server", "requests/s", "audio s/s", "compared", "other sound", "largest difference", *MEMORY]
PATIENCE = 900.0  # seconds for an answer


class Answer(NamedTuple):
    """How a request went."""

    kind: str
    seed: int
    is_complete: bool
    first: float  # seconds until the first sound
    whole: float
    sound: bytes


def main() -> None:
    """Serve, ask and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--callers", type=int, default=8, help="callers at the same time (8)")
    parser.add_argument("--seconds", type=float, default=60, help="duration of a round (60)")
    parser.add_argument("--pause", type=float, default=1.0, help="mean seconds before a caller calls again (1)")
    parser.add_argument("--model", default="tiny", help="the model (tiny)")
    parser.add_argument("--precision", default="auto", help="its precision (auto)")
    parser.add_argument("--trees", type=Path, nargs="+", default=[ROOT], help="source trees to compare (this one)")
    parser.add_argument("--rounds", type=int, default=1, help="rounds of each tree, in turn (1)")
    parser.add_argument("--results", type=Path, help="folder for the findings (none)")
    arguments = parser.parse_args()
    answers: dict[Path, list[Answer]] = {tree: [] for tree in arguments.trees}
    totals = []
    for number in range(arguments.rounds):
        for tree in arguments.trees:
            made, row = measure(tree, arguments, number)
            answers[tree] += made
            totals.append([tree.resolve().name, *row])
    rows = [row for tree, made in answers.items() for row in summary(tree.resolve().name, made)]
    print(f"{hardware('cpu')}, {today()}\n\n{table(HEAD, rows)}\n{table(TOTALS, totals)}")
    if arguments.results:
        save_table("serving", TITLE, HEAD, rows, arguments.results)
    if any(not answer.is_complete for made in answers.values() for answer in made):
        raise SystemExit("Answers were lost.")


@contextmanager
def served(tree: Path, arguments: argparse.Namespace) -> Iterator[tuple[str, psutil.Process]]:
    """Start the server of a source tree and return its address and process."""
    words = ["--model", arguments.model, "--precision", arguments.precision, "--waiting", str(arguments.callers)]
    command = [sys.executable, "-m", "utils", "serve", "--port", "0", *words]
    server = subprocess.Popen(command, cwd=tree, stdout=subprocess.PIPE)
    try:
        yield address(server), psutil.Process(server.pid)
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()


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


def measure(tree: Path, arguments: argparse.Namespace, number: int) -> tuple[list[Answer], list[str]]:
    """Let the callers call a server, and compare some of the sounds with those of single requests."""
    with (
        served(tree, arguments) as (url, process),
        httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as http,
    ):
        for kind in [*TEXTS] * 2:  # what is built once is built now
            asked(http, kind, 0)
        memory, began = [process.memory_info().rss], time.monotonic()
        end = began + arguments.seconds
        threading.Thread(target=watch, args=(process, memory, end)).start()
        with ThreadPoolExecutor(arguments.callers) as pool:
            seeds = [1000 * number + caller for caller in range(arguments.callers)]
            calls = list(pool.map(lambda seed: list(called(http, seed, end, arguments.pause)), seeds))
        took = time.monotonic() - began
        answers = [answer for each in calls for answer in each]
        compared = random.Random(number).sample(answers, min(COMPARED, len(answers)))
        apart = [difference(answer.sound, asked(http, answer.kind, answer.seed).sound) for answer in compared]
    audio = sum(len(answer.sound) for answer in answers) / 2 / OUTPUT_RATE
    others = sum(each > NEAR for each in apart)
    largest = f"{max(apart, default=0):.0f}"
    figures = [f"{len(answers) / took:.2f}", f"{audio / took:.2f}", str(len(compared)), str(others), largest]
    fifths = [np.array(memory[:1]), *np.array_split(np.array(memory[1:]), len(MEMORY) - 1)]
    return answers, [*figures, *(f"{np.median(fifth) / 1e6:.0f}" for fifth in fifths)]


def watch(process: psutil.Process, memory: list[int], end: float) -> None:
    """Add the memory of a process to a list, twice a second until the time is over."""
    while time.monotonic() < end:
        time.sleep(0.5)
        memory.append(process.memory_info().rss)


def called(http: httpx.Client, seed: int, end: float, pause: float) -> Iterator[Answer]:
    """Call again and again until the time is over."""
    chance = random.Random(seed)
    while True:
        time.sleep(chance.expovariate(1 / pause) if pause else 0)
        if time.monotonic() > end:
            return
        (kind,) = chance.choices([*TEXTS], WEIGHTS)
        yield asked(http, kind, chance.randrange(2**31))


def asked(http: httpx.Client, kind: str, seed: int) -> Answer:
    """Ask for a text and read its stream."""
    began, first, sound = time.monotonic(), 0.0, b""
    body = {"input": TEXTS[kind], "seed": seed, "response_format": "pcm"}
    try:
        with http.stream("POST", "/v1/audio/speech", json=body) as answer:
            for chunk in answer.iter_raw():
                first = first or time.monotonic() - began
                sound += chunk
            is_complete = answer.status_code == httpx.codes.OK and bool(sound)
    except httpx.TransportError:
        is_complete = False
    return Answer(kind, seed, is_complete, first, time.monotonic() - began, sound)


def difference(sound: bytes, other: bytes) -> float:
    """Return the largest difference of two samples; infinity where the lengths differ."""
    if len(sound) != len(other):
        return float("inf")
    samples = [np.frombuffer(each, "<i2").astype(int) for each in (sound, other)]
    return float(np.abs(samples[0] - samples[1]).max(initial=0))


def summary(name: str, answers: list[Answer]) -> Iterator[list[str]]:
    """Yield a row for each kind of text and one for all."""
    for kind in (*TEXTS, "all"):
        made = [answer for answer in answers if kind in (answer.kind, "all")]
        lost = sum(not answer.is_complete for answer in made)
        times = [[answer.first for answer in made], [answer.whole for answer in made]]
        shown = [f"{np.quantile(each, share):.2f}" for each in times for share in (0.5, 0.95)] if made else [""] * 4
        yield [name, kind, str(len(made)), str(lost), *shown]


if __name__ == "__main__":
    main()
