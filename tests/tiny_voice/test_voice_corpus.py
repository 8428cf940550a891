"""What the small voice learns from: who speaks what, and what is kept apart."""

import dataclasses
import shutil

import numpy as np
import pytest

from tools.tiny_voice import audio, corpus, espeak, speakers
from tools.tiny_voice.espeak import EspeakError
from tools.tiny_voice.recipe import Corpus
from tools.tiny_voice.speakers import HELD_OUT, SPEAKERS
from utils.core.languages import AMHARIC
from utils.media.rates import RATE
from utils.xtts.language_packs import pack_for

SMALL = Corpus(sentences=40, takes=3, phrases=200, word_lists=60, judged=12)
TAKES = corpus.choose_takes(SMALL)

needs_espeak = pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not here")


def test_no_held_out_sentence_and_no_held_out_speaker_is_learnt_from() -> None:
    held = set(corpus.read_sentences()["eval"])
    assert held
    assert not held & {take.text for take in TAKES if take.split == "train"}
    assert {take.text for take in TAKES if take.split == "eval" and take.kind == "sentence"} <= held

    assert not {speaker.name for speaker in HELD_OUT} & {take.speaker for take in TAKES}
    assert not {speaker.variant for speaker in HELD_OUT} & {speaker.variant for speaker in SPEAKERS}


def test_phrases_are_one_to_four_words_and_each_is_there_once() -> None:
    phrases = [take.text for take in TAKES if take.kind == "phrase" and take.split == "train"]
    assert len(phrases) == len(set(phrases)) == SMALL.phrases + SMALL.word_lists
    assert {len(phrase.split()) for phrase in phrases} == {1, 2, 3, 4}
    assert any(corpus.MARK in phrase for phrase in phrases)
    assert any(phrase.endswith("?") for phrase in phrases)


@pytest.mark.parametrize("level", [0.01, 0.9])
def test_silence_is_cut_off_but_for_a_little_and_every_clip_is_equally_loud(level: float) -> None:
    tone = (level * np.sin(np.arange(22_050) * 0.1)).astype(np.float32)
    cut = audio.trim_silence(np.pad(tone, 22_050))
    assert 1.0 < cut.size / 22_050 < 1.2
    power = np.sqrt(np.mean(np.square(audio.normalise_loudness(tone))))
    assert power == pytest.approx(10 ** (-23 / 20), rel=0.02)


def test_an_error_names_the_fix_where_espeak_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(espeak, "LIBRARY", "no-such-library.so")
    with pytest.raises(EspeakError, match="apt install espeak-ng"):
        espeak.Espeak()


def test_a_sound_without_a_phoneme_is_refused() -> None:
    with pytest.raises(EspeakError, match="θa"):
        espeak.split_phones("saθa")


@needs_espeak
def test_voices_differ_and_numbers_are_spelled_out() -> None:
    digits, words = (audio.render(text, SPEAKERS[0]).size for text in ("3 ሰዓት", "ሦስት ሰዓት"))
    assert digits == pytest.approx(words, abs=0.01 * RATE)  # not equal: espeak-ng goes on where it was in its waves

    speakers.refuse_equal_voices()
    unknown = [dataclasses.replace(speaker, variant="nosuch") for speaker in SPEAKERS[:2]]
    with pytest.raises(EspeakError, match=r"same voice.*variant nosuch"):
        speakers.refuse_equal_voices(unknown)


@needs_espeak
def test_espeak_speaks_the_phones_that_the_token_ids_are_made_of() -> None:
    pack = pack_for(AMHARIC.code)
    for text in corpus.read_sentences()["eval"][:40]:
        phones = pack.phonemise(pack.normalise(text))
        words = [word for clause in espeak.CLAUSE.split(phones)[::2] for word in clause.split()]
        written = [phone for word in words for phone in espeak.split_phones(word)]
        spoken = [phone.name for phone in speakers.speak(phones, SPEAKERS[0]).phones]
        assert spoken == written, text


@needs_espeak
@pytest.mark.parametrize(("single", "double"), [("alə", "alːə"), ("səbərə", "səbːərə"), ("gəna", "gənːa")])
def test_a_geminate_is_longer(single: str, double: str) -> None:
    seconds = [speakers.speak(phones.replace("g", "ɡ"), SPEAKERS[0]).samples.size / RATE for phones in (single, double)]
    assert seconds[1] > seconds[0] + 0.04
