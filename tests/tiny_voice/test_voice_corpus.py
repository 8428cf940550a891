"""What the small voice learns from: who speaks what, and what is kept apart."""

import shutil

import pytest

from tools.tiny_voice import corpus, espeak, speakers
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


@needs_espeak
def test_espeak_speaks_the_phones_that_the_token_ids_are_made_of() -> None:
    pack = pack_for(AMHARIC.code)
    for text in corpus.read_sentences()["eval"][:40]:
        phones = pack.phonemize(pack.normalize(text))
        words = [word for clause in espeak.CLAUSE.split(phones)[::2] for word in clause.split()]
        written = [phone for word in words for phone in espeak.split_phones(word)]
        spoken = [phone.name for phone in speakers.speak(phones, SPEAKERS[0]).phones]
        assert spoken == written, text


@needs_espeak
@pytest.mark.parametrize(("single", "double"), [("alə", "alːə"), ("səbərə", "səbːərə"), ("gəna", "gənːa")])
def test_a_geminate_is_longer(single: str, double: str) -> None:
    seconds = [speakers.speak(phones.replace("g", "ɡ"), SPEAKERS[0]).samples.size / RATE for phones in (single, double)]
    assert seconds[1] > seconds[0] + 0.04
