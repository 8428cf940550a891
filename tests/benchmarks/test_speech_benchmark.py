"""The figures of the speech benchmark follow from its rounds."""

from benchmarks.speech_findings import (
    FIRST,
    FIRST_BY_DEFAULT,
    LOADED,
    LOADING,
    MANY,
    ONE,
    SPEAKING,
    STOP,
    SpokenSide,
    speech_table,
)
from benchmarks.speech_sides import TEXTS


def side(name: str, *seconds: float, peak: float) -> SpokenSide:
    rounds = [dict.fromkeys((ONE, MANY, FIRST, FIRST_BY_DEFAULT, STOP), each) for each in seconds]
    return SpokenSide(name, "int8", "bf16", rounds, {LOADED: peak / 2, LOADING: peak, SPEAKING: peak / 4})


def test_the_best_round_counts_and_the_slowest_stop() -> None:
    coqui, ours = side("coqui", 8.0, 6.0, peak=2000), side("ours", 2.0, 4.0, peak=3000)
    head, rows = speech_table([coqui, ours], 4.0, 8)
    assert head == ["", "coqui: GPT int8, vocoder bf16", "ours: GPT int8, vocoder bf16", "ratio"]
    table = {label: cells for label, *cells in rows}
    assert table["one sentence, s"] == ["6.00", "2.00", "3.00 x"]
    assert table["one sentence, real-time factor"] == ["1.50", "0.50", "3.00 x"]
    assert table["stopped after, ms"] == ["8000", "4000", "2.00 x"]
    assert table["peak memory while loading, MiB"] == ["2000", "3000", "150%"]


def test_the_eight_texts_have_eight_lengths_of_one_sentence_on_average() -> None:
    assert len(TEXTS) == len(set(TEXTS.values())) == 8
    assert round(sum(TEXTS.values()), 6) == 8
    letters = [len(text) / length for text, length in TEXTS.items()]
    assert max(letters) / min(letters) < 1.1  # the texts are as long as their codes
