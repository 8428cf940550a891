"""Many clients at once, some of which break the rules: no response is lost and no memory grows."""

import os
import random
from concurrent.futures import ThreadPoolExecutor

import httpx2 as httpx
import psutil
import pytest

from tests.server.fake_server import CHUNK, SLOW, SPEECH, Served, served

REQUESTS, CALLERS = 200, 8
GROWTH = 4e6  # bytes; measured below 1e6 on Linux
# Each thread of glibc keeps up to 7 MB of what its first encoder freed, whenever that is, unless blocks of this size go
# back to the system; then only what the server keeps is counted.
FREED_AT_ONCE = {"MALLOC_MMAP_THRESHOLD_": "131072"}

pytestmark = pytest.mark.slow


def send(server: Served, number: int) -> str:
    """Send one request of some kind and return how it went."""
    kind = ("pcm", "mp3", "opus", "flac", "wav", "wrong", "killed", "sse")[number % 8]
    words = number % 5 + 1
    body: dict[str, object] = {"input": " ".join(["word"] * words), "response_format": "pcm"}
    with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as http:
        if kind == "wrong":
            answer = http.post(SPEECH, json={"input": ""})
            return "fine" if answer.status_code == 400 else f"{kind}: {answer.status_code}"
        if kind == "killed":
            with http.stream("POST", SPEECH, json={**body, "input": SLOW + " word" * 50}) as answer:
                next(answer.iter_raw())
            return "fine"
        if kind == "sse":
            answer = http.post(SPEECH, json={**body, "stream_format": "sse"})
            return "fine" if "speech.audio.done" in answer.text else f"{kind}: {answer.text[:80]}"
        answer = http.post(SPEECH, json={**body, "response_format": kind, "stream": number % 3 > 0})
        lost = kind == "pcm" and number % 3 and len(answer.content) != words * CHUNK.nbytes // 2
        return "fine" if answer.status_code == 200 and answer.content and not lost else f"{kind}: {answer.status_code}"


def send_all(server: Served, seed: int) -> list[str]:
    numbers = random.Random(seed).sample(range(REQUESTS), REQUESTS)
    with ThreadPoolExecutor(CALLERS) as callers:
        return list(callers.map(lambda number: send(server, number), numbers))


@pytest.mark.long
def test_two_hundred_requests_by_eight_callers_lose_none_and_memory_stays_flat() -> None:
    with served("--waiting", "8", environment=os.environ | FREED_AT_ONCE) as server:
        process = psutil.Process(server.process.pid)
        for seed in range(1, 5):  # what is built once for each thread is built now
            assert set(send_all(server, seed)) == {"fine"}
        before = process.memory_info().rss
        threads = process.num_threads()
        assert set(send_all(server, 0)) == {"fine"}
        server.wait_until(speaking=0, waiting=0, open=0)
        assert process.memory_info().rss - before < GROWTH
        assert process.num_threads() <= threads
