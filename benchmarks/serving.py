"""Load the speech server with callers at random times: `python benchmarks/serving.py --seconds 60`.

The server is `python -m utils serve` in a process of its own. Each caller waits a random time, sends a phrase, a
sentence or a long text, and reads the stream to its end. Afterwards, some requests are sent again one by one, to
compare the audio. Callers without a pause (`--pause 0`) show the throughput.
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

from benchmarks.record import conclude
from utils.core.paths import ROOT
from utils.media.rates import OUTPUT_RATE

SENTENCE = "ዛሬ ጠዋት ወደ ገበያ ሄጄ ቡና እና ዳቦ ገዛሁ።"
TEXTS = {"phrase": "ሰላም።", "sentence": SENTENCE, "long text": f"{SENTENCE} ነገ ደግሞ እንገናኛለን። " * 6}
WEIGHTS = (6, 3, 1)  # how often each is sent
COMPARED = 20  # requests that are sent again
NEAR = 40  # of 32,768: a chunk's gain follows the loudness, so a rounding error grows
FIFTHS = 5  # of the time, of whose memory the medians are told
HEAD = ["text", "requests", "lost", "first sound, s: median", "95 %", "whole, s: median", "95 %"]
PAGE = """\
The speech server with callers at random times

{callers} callers for {seconds:.0f} s, each after a pause of {pause:g} s on average; model {model}. {requests:.2f}
requests and {audio:.2f} s of audio a second. {compared} requests were sent again: {others} sounded different, by
{largest:.0f} of 32,768 at most. Memory of the server in MB when loaded, and the median of each fifth of the time:
{memory}.
"""
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
    parser.add_argument("--seconds", type=float, default=60, help="duration (60)")
    parser.add_argument("--pause", type=float, default=1.0, help="mean seconds before a caller calls again (1)")
    parser.add_argument("--model", default="tiny", help="the model (tiny)")
    parser.add_argument("--results", type=Path, help="folder for the findings (none)")
    options = parser.parse_args()
    answers, found = measure(options)
    rows = [summary(kind, [each for each in answers if kind in (each.kind, "all")]) for kind in (*TEXTS, "all")]
    conclude("serving", PAGE, options, HEAD, rows, **found)
    if not all(answer.is_complete for answer in answers):
        raise SystemExit("Answers were lost.")


@contextmanager
def served(options: argparse.Namespace) -> Iterator[tuple[str, psutil.Process]]:
    """Start a server and return its address and process."""
    words = ["--port", "0", "--model", options.model, "--waiting", str(options.callers)]
    command = [sys.executable, "-m", "utils", "serve", *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as server:
        try:
            yield address(server), psutil.Process(server.pid)
        finally:
            server.kill()  # it has nothing to save


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


def measure(options: argparse.Namespace) -> tuple[list[Answer], dict[str, object]]:
    """Let the callers call a server, and compare some of the sounds with those of single requests."""
    with served(options) as (url, process), httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as http:
        for kind in [*TEXTS] * 2:  # what is built once is built now
            asked(http, kind, 0)
        memory, began = [process.memory_info().rss], time.monotonic()
        end = began + options.seconds
        threading.Thread(target=watch, args=(process, memory, end)).start()
        with ThreadPoolExecutor(options.callers) as pool:
            calls = list(pool.map(lambda seed: list(called(http, seed, end, options.pause)), range(options.callers)))
        took = time.monotonic() - began
        answers = [answer for each in calls for answer in each]
        compared = random.Random(0).sample(answers, min(COMPARED, len(answers)))
        apart = [difference(answer.sound, asked(http, answer.kind, answer.seed).sound) for answer in compared]
    medians = [memory[0], *(np.median(fifth) for fifth in np.array_split(np.array(memory[1:]), FIFTHS))]
    return answers, {
        "requests": len(answers) / took,
        "audio": sum(len(answer.sound) for answer in answers) / 2 / OUTPUT_RATE / took,
        "compared": len(compared),
        "others": sum(each > NEAR for each in apart),
        "largest": max(apart, default=0.0),
        "memory": ", ".join(f"{each / 1e6:.0f}" for each in medians),
    }


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


def summary(kind: str, answers: list[Answer]) -> list[str]:
    """Return a row for a kind of text."""
    lost = sum(not answer.is_complete for answer in answers)
    if not answers:
        return [kind, "0", "0", "", "", "", ""]
    times = np.quantile([(answer.first, answer.whole) for answer in answers], (0.5, 0.95), axis=0)
    return [kind, str(len(answers)), str(lost), *(f"{seconds:.2f}" for seconds in times.T.flatten())]


if __name__ == "__main__":
    main()
