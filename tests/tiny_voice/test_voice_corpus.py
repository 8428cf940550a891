"""What the small voice learns from: who speaks what, and what is kept apart."""

import dataclasses
import shutil

import numpy as np
import pytest

from tools.tiny_voice import audio, corpus, speakers
from tools.tiny_voice.recipe import Corpus
from tools.tiny_voice.speakers import HELD_OUT, SPEAKERS, EspeakError
from utils.media.audio import Samples

SMALL = Corpus(sentences=40, takes=3, phrases=200, judged=12)
TAKES = corpus.takes(SMALL)


def test_no_held_out_sentence_is_learnt_from() -> None:
    held = set(corpus.read_sentences()["eval"])
    assert held
    assert not held & {take.text for take in TAKES if take.split == "train"}
    assert {take.text for take in TAKES if take.split == "eval" and take.kind == "sentence"} <= held


def test_the_voice_of_the_sample_project_is_never_learnt_from() -> None:
    assert HELD_OUT.name not in {take.speaker for take in TAKES}
    assert HELD_OUT.variant not in {speaker.variant for speaker in SPEAKERS}


def test_pieces_are_one_to_four_words_and_each_is_there_once() -> None:
    pieces = [take.text for take in TAKES if take.kind == "phrase" and take.split == "train"]
    assert len(pieces) == len(set(pieces)) == SMALL.phrases
    assert {len(piece.split()) for piece in pieces} == {1, 2, 3, 4}


def tone(seconds: float, level: float) -> Samples:
    sound: Samples = (level * np.sin(np.arange(round(seconds * 22_050)) * 0.1)).astype(np.float32)
    return sound


def test_silence_is_cut_off_but_for_a_little() -> None:
    quiet = np.zeros(22_050, np.float32)
    cut = audio.trim_silence(np.concatenate([quiet, tone(1.0, 0.3), quiet]))
    assert 1.0 < cut.size / 22_050 < 1.2


@pytest.mark.parametrize("level", [0.01, 0.1, 0.9])
def test_every_clip_is_equally_loud(level: float) -> None:
    power = np.sqrt(np.mean(np.square(audio.normalise_loudness(tone(1.0, level)))))
    assert power == pytest.approx(10 ** (-23 / 20), rel=0.02)


def test_without_espeak_the_cure_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EspeakError, match="apt install espeak-ng"):
        speakers.speak("ሰላም", SPEAKERS[0])


needs_espeak = pytest.mark.skipif(shutil.which(speakers.PROGRAM) is None, reason="espeak-ng is not here")


@needs_espeak
def test_voices_differ_and_numbers_are_said_in_words() -> None:
    first, second = (audio.render("3 ሰዓት", one) for one in SPEAKERS[:2])
    assert first.size != second.size or not np.allclose(first, second)
    words = audio.render("ሦስት ሰዓት", SPEAKERS[0])
    assert np.array_equal(first, words)


@needs_espeak
def test_a_variant_that_is_not_there_is_an_error_with_a_cure() -> None:
    speakers.refuse_same_voices()
    with pytest.raises(EspeakError, match=r"same voice.*variant nosuch"):
        speakers.refuse_same_voices([SPEAKERS[0], dataclasses.replace(SPEAKERS[1], variant="nosuch")])
