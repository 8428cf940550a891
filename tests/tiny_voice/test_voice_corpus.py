"""What the small voice learns from: who speaks what, and what is kept apart."""

import dataclasses
import shutil

import numpy as np
import pytest

from tools.tiny_voice import audio, corpus, speakers
from tools.tiny_voice.recipe import Corpus
from tools.tiny_voice.speakers import HELD_OUT, SPEAKERS, EspeakError

SMALL = Corpus(sentences=40, takes=3, phrases=200, judged=12)
TAKES = corpus.takes(SMALL)


def test_no_held_out_sentence_and_not_the_voice_of_the_sample_project_is_learnt_from() -> None:
    held = set(corpus.read_sentences()["eval"])
    assert held
    assert not held & {take.text for take in TAKES if take.split == "train"}
    assert {take.text for take in TAKES if take.split == "eval" and take.kind == "sentence"} <= held

    assert HELD_OUT.name not in {take.speaker for take in TAKES}
    assert HELD_OUT.variant not in {speaker.variant for speaker in SPEAKERS}


def test_pieces_are_one_to_four_words_and_each_is_there_once() -> None:
    pieces = [take.text for take in TAKES if take.kind == "phrase" and take.split == "train"]
    assert len(pieces) == len(set(pieces)) == SMALL.phrases
    assert {len(piece.split()) for piece in pieces} == {1, 2, 3, 4}


@pytest.mark.parametrize("level", [0.01, 0.9])
def test_silence_is_cut_off_but_for_a_little_and_every_clip_is_equally_loud(level: float) -> None:
    tone = (level * np.sin(np.arange(22_050) * 0.1)).astype(np.float32)
    cut = audio.trim_silence(np.pad(tone, 22_050))
    assert 1.0 < cut.size / 22_050 < 1.2
    power = np.sqrt(np.mean(np.square(audio.normalise_loudness(tone))))
    assert power == pytest.approx(10 ** (-23 / 20), rel=0.02)


def test_without_espeak_the_cure_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EspeakError, match="apt install espeak-ng"):
        speakers.speak("ሰላም", SPEAKERS[0])


@pytest.mark.skipif(shutil.which(speakers.PROGRAM) is None, reason="espeak-ng is not here")
def test_voices_differ_and_numbers_are_said_in_words() -> None:
    first, second = (audio.render("3 ሰዓት", one) for one in SPEAKERS[:2])
    assert first.size != second.size or not np.allclose(first, second)
    words = audio.render("ሦስት ሰዓት", SPEAKERS[0])
    assert np.array_equal(first, words)

    speakers.refuse_same_voices()
    with pytest.raises(EspeakError, match=r"same voice.*variant nosuch"):
        speakers.refuse_same_voices([SPEAKERS[0], dataclasses.replace(SPEAKERS[1], variant="nosuch")])
