"""The whole way from a text to its sound, with a small model of random weights."""

import gc
import weakref

import numpy as np
import pytest

from tests.speech import amharic_model
from utils.config import SpeechConfig
from utils.core.errors import AmharicTtsError, ConfigError, TextError
from utils.dataset.clip import Cue, Span
from utils.media.rates import OUTPUT_RATE
from utils.speech.kv_cache import Cache
from utils.speech.retries import Line
from utils.speech.synthesizer import Synthesizer

PLAIN = SpeechConfig(tries=1, trim=False)  # what the model says, and nothing done to it
TEXT = "ሰላም ለዓለም። እንዴት ነህ?"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Synthesizer:
    folder = tmp_path_factory.mktemp("amharic")
    return Synthesizer.load(amharic_model.build(folder), "cpu", "fp32", cache=folder / "voices")


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """A random model never ends; half a second of it is enough."""
    monkeypatch.setattr(Line, "limit", lambda *_: 12)


def test_a_text_is_spoken_sentence_by_sentence(model: Synthesizer) -> None:
    speech = model.speak(TEXT, PLAIN)
    assert [piece.reading.written for piece in speech.pieces] == ["ሰላም ለዓለም።", "እንዴት ነህ?"]
    assert speech.samples.dtype == np.float32
    assert speech.seconds == pytest.approx(sum(piece.seconds + piece.pause for piece in speech.pieces))
    assert speech.pieces[1].start == pytest.approx(speech.pieces[0].seconds + PLAIN.sentence_pause, abs=1e-3)
    assert set(speech.took) == {"reading", "decoding", "sound", "all"}
    assert 0 < speech.took["decoding"] < speech.took["all"]
    assert any("endless" in flag for flag in speech.flags)


@pytest.mark.parametrize(("seeds", "same"), [((3, 3), True), ((3, 4), False)])
def test_the_same_seed_makes_the_same_sound(model: Synthesizer, seeds: tuple[int, int], same: bool) -> None:
    one, other = (model.speak("ሰላም", PLAIN, seed=seed) for seed in seeds)
    assert np.array_equal(one.samples, other.samples) == same


def test_one_sentence_alone_sounds_as_in_its_text(model: Synthesizer) -> None:
    piece = model.speak(TEXT, PLAIN, seed=5).pieces[1]
    again = model.again(piece, PLAIN.model_copy(update={"seed": piece.seed}))
    assert again.codes.tolist() == piece.codes.tolist()
    np.testing.assert_allclose(again.samples, piece.samples, atol=1e-4)
    other = model.again(piece, PLAIN.model_copy(update={"seed": piece.seed + 1}))
    assert other.codes.tolist() != piece.codes.tolist()
    assert (other.reading, other.pause, other.paragraph) == (piece.reading, piece.pause, piece.paragraph)


@pytest.mark.parametrize("codes", [(2, 2), (3, 7), (12, 24)])
def test_a_stream_sounds_as_the_whole(model: Synthesizer, codes: tuple[int, int]) -> None:
    first, then = codes
    config = PLAIN.model_copy(update={"first_codes": first, "chunk_codes": then})
    whole = model.speak(TEXT, config)
    parts = list(model.stream(TEXT, config))
    raw = np.concatenate(parts)
    assert len(raw) == len(whole.samples)
    ends = 0.01, whole.pieces[0].seconds - 0.01  # where the whole fades
    middle = slice(*(round(end * OUTPUT_RATE) for end in ends))
    np.testing.assert_allclose(raw[middle], whole.samples[middle], atol=1e-4)


def test_closing_a_stream_frees_what_it_held(model: Synthesizer, monkeypatch: pytest.MonkeyPatch) -> None:
    caches: list[weakref.ref[Cache]] = []
    make = model.decoder.stack.cache

    def watched(*arguments: object) -> Cache:
        made = make(*arguments)  # type: ignore[arg-type]
        caches.append(weakref.ref(made))
        return made

    monkeypatch.setattr(model.decoder.stack, "cache", watched)
    stream = model.stream(TEXT, PLAIN.model_copy(update={"first_codes": 2, "chunk_codes": 2}))
    next(stream)
    assert caches[0]() is not None
    stream.close()
    gc.collect()
    assert caches[0]() is None
    assert model.speak("ሰላም", PLAIN).seconds > 0  # nobody holds the model any more


def test_several_texts_share_their_batches_and_come_back_apart(model: Synthesizer) -> None:
    apart = [model.speak(text, PLAIN) for text in (TEXT, "ሰላም")]
    together = model.speak_many([TEXT, "ሰላም"], PLAIN)
    assert [len(speech.pieces) for speech in together] == [2, 1]
    assert together[0].pieces[0].codes.tolist() == apart[0].pieces[0].codes.tolist()


def test_settings_can_be_named_one_by_one_and_are_checked(model: Synthesizer) -> None:
    slow = model.speak("ሰላም", PLAIN, speed=0.8)
    assert slow.seconds == pytest.approx(model.speak("ሰላም", PLAIN).seconds / 0.8, rel=0.02)
    with pytest.raises(ConfigError, match="speed"):
        model.speak("ሰላም", PLAIN, speed=9)


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "no text"), ("። ፣", "Nothing"), ("🙂🙂", "Nothing"), ("สวัสดี", "cannot read")],
)
def test_what_cannot_be_spoken_is_one_sentence_with_a_cure(model: Synthesizer, text: str, said: str) -> None:
    with pytest.raises(TextError, match=said) as caught:
        model.speak(text, PLAIN)
    assert caught.value.hint


def test_an_unknown_voice_is_refused_before_anything_is_said(model: Synthesizer) -> None:
    with pytest.raises(AmharicTtsError, match="nobody"):
        model.speak("ሰላም", PLAIN, reference="nobody")


def test_subtitles_are_spoken_in_their_time(model: Synthesizer) -> None:
    cues = [Cue(Span(1.0, 1.6), "ሰላም"), Cue(Span(2.0, 2.5), "♪"), Cue(Span(3.0, 4.0), "እንዴት ነህ?")]
    timeline = model.dub(cues, PLAIN)
    assert len(timeline.samples) == 4 * OUTPUT_RATE
    assert not timeline.samples[:OUTPUT_RATE].any()
    assert timeline.samples[round(1.1 * OUTPUT_RATE) : round(1.4 * OUTPUT_RATE)].any()
    assert timeline.placed[1].note == "Nothing is said."


def test_the_pieces_of_a_text_come_one_after_the_other(model: Synthesizer) -> None:
    config = PLAIN.model_copy(update={"batch_size": 1})
    pieces = model.pieces(TEXT, config)
    first = next(pieces)
    pieces.close()
    speech = model.joined([first], config)
    assert len(speech.pieces) == 1
    assert speech.seconds == pytest.approx(first.seconds + first.pause)


def test_a_model_says_which_voices_it_brings(model: Synthesizer) -> None:
    assert model.voices() == ("default", "Tiny Abebe", "Tiny Almaz")
