"""The voice that comes with the program: what it is, what it says, and what plain coqui-tts makes of it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.xtts.exporting import plain_model
from utils.config import SpeechConfig
from utils.core.paths import ROOT, TINY_MODEL
from utils.speech.facts import WordsFound
from utils.speech.synthesizer import Caches, open_voice
from utils.xtts.model import load_vocoder
from utils.xtts.narrow_vocoder import without_silent_channels

MAX_BYTES = 40_000_000


@torch.no_grad()
def test_its_narrow_vocoder_sounds_as_the_wide_one_of_coqui() -> None:
    decoder, _ = load_vocoder(TINY_MODEL)
    wide: Any = decoder.eval().get_submodule("waveform_decoder")
    narrow: Any = without_silent_channels(decoder)
    assert narrow.ups[0].out_channels < wide.ups[0].out_channels
    frames, voice = torch.randn(1, wide.conv_pre.in_channels, 16), torch.randn(1, 512, 1) * 0.05
    whole = wide(frames, g=voice)
    assert torch.allclose(narrow(frames, g=voice), whole, atol=1e-4 * float(whole.abs().max()))


@pytest.mark.slow
def test_its_sentences_end_and_their_words_are_heard(tmp_path: Path) -> None:
    lines = (ROOT / "tests" / "data" / "amharic_sentences.txt").read_text(encoding="utf-8").splitlines()
    texts = [line for line in lines if 5 <= len(line.split()) <= 9][:16]
    spoken = open_voice(TINY_MODEL, caches=Caches(tmp_path)).speak_many(texts, SpeechConfig(tries=1, batch_size=8))
    utterances = [utterance for speech in spoken for utterance in speech.utterances]
    assert all(utterance.ended for utterance in utterances)
    words = WordsFound.of(utterances)
    assert words.found >= 0.85 * words.total > 0


@pytest.mark.slow
def test_plain_coqui_speaks_with_every_stored_voice() -> None:
    model = plain_model(TINY_MODEL)
    for speaker, voice in model.speaker_manager.speakers.items():
        assert len(model.inference("selam", "en", **voice, max_new_tokens=8)["wav"])
        torch.manual_seed(0)
        sound = model.synthesize("selam", speaker=speaker, language="en", max_new_tokens=40)["wav"]
        assert np.isfinite(sound).all()
        assert len(sound) > 4_000


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in TINY_MODEL.iterdir()) <= MAX_BYTES


def test_it_says_what_it_is() -> None:
    about = json.loads((TINY_MODEL / "about.json").read_text(encoding="utf-8"))
    assert "not XTTS v2" in about["about"]
    assert about["licence"] == "Apache-2.0"
    assert "espeak-ng" in (TINY_MODEL / "LICENCE.txt").read_text(encoding="utf-8")
