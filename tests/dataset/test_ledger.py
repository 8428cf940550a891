import time

import pytest

from utils.dataset.clip import Clip, Span
from utils.dataset.ledger import Ledger, account


def clip(start: float, end: float, reason: str = "") -> Clip:
    made = Clip(f"{start}", "r", "r.wav", Span(start, end), "s", "text")
    return made.excluded(reason) if reason else made


@pytest.mark.parametrize(
    ("clips", "kept", "aside"),
    [
        ([], 0, {}),
        ([clip(1, 3), clip(4, 6)], 4, {}),
        ([clip(1, 3), clip(4, 6, "noisy"), clip(7, 7.5, "too short")], 2, {"noisy": 2, "too short": 0.5}),
        ([clip(1, 3, "noisy"), clip(2, 5)], 3, {"noisy": 1}),
        ([clip(1, 3, "noisy"), clip(2, 5, "too fast")], 0, {"noisy": 2, "too fast": 2}),
        ([clip(1, 3), clip(2, 5)], 4, {}),
        ([clip(8, 12), clip(-1, 1)], 3, {}),
        ([clip(2, 4, "noisy"), clip(2, 4)], 2, {"noisy": 0}),
    ],
    ids=[
        "nothing but pauses",
        "kept",
        "set aside by reason",
        "a second in two clips counts for the kept one",
        "or for the first reason",
        "or once",
        "only within the recording",
        "restored",
    ],
)
def test_every_second_is_accounted_for_once(clips: list[Clip], kept: float, aside: dict[str, float]) -> None:
    entry = account("r.wav", 10, clips)
    assert entry.kept == pytest.approx(kept)
    assert entry.aside == pytest.approx(aside)
    assert entry.between == pytest.approx(10 - kept - sum(aside.values()))


def filled() -> Ledger:
    ledger = Ledger()
    ledger.add("a.wav", 120, [clip(0, 60), clip(60, 72, "too short")])
    ledger.add("b.wav", 60, [clip(0, 30), clip(40, 58, "noisy"), clip(31, 37, "too short")])
    ledger.fail("c.mp3", "It is empty (0 bytes).")
    return ledger


def test_the_parts_add_up_to_the_recordings() -> None:
    ledger = filled()
    assert ledger.seconds == 180
    assert ledger.kept + sum(ledger.aside.values()) + ledger.between == pytest.approx(180, abs=0.1)


def test_one_paragraph_tells_it() -> None:
    assert filled().render() == (
        "Input 3.0 min: in use 1.5, pauses between clips 0.9, excluded 0.6: too short 0.3, noisy 0.3."
        " Not used: c.mp3 (It is empty (0 bytes))."
    )


def test_nothing_set_aside_needs_no_reasons() -> None:
    ledger = Ledger()
    ledger.add("a.wav", 60, [clip(0, 60)])
    assert ledger.render() == "Input 1.0 min: in use 1.0, pauses between clips 0.0, excluded 0.0."


@pytest.mark.slow
def test_fifty_thousand_clips_are_added_up_quickly() -> None:
    reasons = ["", "", "", "noisy", "too short"]
    clips = [clip(number * 6.0, number * 6.0 + 5, reasons[number % 5]) for number in range(50_000)]
    begin = time.perf_counter()
    ledger = Ledger()
    ledger.add("a.wav", 300_000, clips)
    assert ledger.kept == pytest.approx(150_000)
    assert time.perf_counter() - begin < 5
