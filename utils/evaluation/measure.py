"""One model speaks one sentence: its sound is kept, and all that needs no recogniser is measured."""

import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from utils.config import SEPARATOR, SpeechConfig
from utils.core.errors import AudioError, TextError
from utils.core.storage import make_folder
from utils.evaluation import spectra
from utils.evaluation.models import Candidate, Model
from utils.evaluation.results_log import content_of
from utils.evaluation.utterance import TestSentence, Utterance, digest
from utils.media import audio
from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE
from utils.speech import guards
from utils.speech.types import Speech

WAVS = "wavs"
NOT_THE_SPEECH = {"model", "reference", "language"}  # settings that are told in another way


def spoken(model: Model, name: str, sentence: TestSentence, key: str, folder: Path, config: SpeechConfig) -> Utterance:
    """Speak one sentence, keep its sound, and measure all that needs no recogniser."""
    utterance = Utterance(
        key, name, sentence.text, sentence.language, sentence.voice, identity_of(sentence), recording=sentence.recording
    )
    settings = config.model_copy(update={"reference": sentence.reference, "language": sentence.language})
    begun = time.monotonic()
    try:
        speech = model.speak(sentence.text, settings)
        voice = model.voice(sentence.reference)
    except (TextError, AudioError) as error:  # of this sentence alone: the others can be judged
        return replace(utterance, fault=str(error))
    took = time.monotonic() - begun
    utterance = replace(
        utterance,
        flags=speech.flags,
        tries=max((piece.tries for piece in speech.pieces), default=1),
        real_time_factor=speech.real_time_factor or (took / speech.seconds if speech.seconds else None),
    )
    if not speech.samples.size or not np.isfinite(speech.samples).all():
        return utterance  # the flags say so; there is nothing to measure or to listen to
    recording = audio.load(sentence.recording, OUTPUT_RATE) if sentence.recording else None
    return replace(
        utterance,
        wav=_saved(speech.samples, folder, utterance),
        seconds=guards.Heard(speech.samples).spoken,
        expected=_expected(speech, sentence.language) if recording is None else guards.Heard(recording).spoken,
        similarity=float(voice @ model.voice_of(speech.samples)),
        distance=None if recording is None else _distance(speech.samples, recording),
    )


def _expected(speech: Speech, language: str) -> float | None:
    """Return the seconds that a text usually takes, its pauses between sentences included."""
    usual = sum(guards.sounds(piece.reading) for piece in speech.pieces) / guards.Limits.of(language).usual
    return usual + sum(piece.pause for piece in speech.pieces[:-1]) if usual else None


def _distance(samples: Samples, recording: Samples) -> float | None:
    return spectra.distance(*(guards.trim(guards.Heard(sound)) for sound in (samples, recording)))


def _saved(samples: Samples, folder: Path, utterance: Utterance) -> str:
    """Write a sound under a name that tells what it is; return its path in the folder."""
    place = Path(WAVS, _as_name(utterance.checkpoint, 60), f"{_as_name(utterance.text, 30)}_{utterance.key[:8]}.wav")
    make_folder((folder / place).parent)
    audio.save(folder / place, samples, OUTPUT_RATE)
    return place.as_posix()


def _as_name(text: str, longest: int) -> str:
    """Keep letters, Ethiopic ones too, and digits."""
    return re.sub(r"[^\w.-]+", "_", text).strip("._")[:longest] or "text"


def key_of(candidate: Candidate, sentence: TestSentence, config: SpeechConfig) -> str:
    """Hash everything that a measurement follows from."""
    return digest(candidate.fingerprint, identity_of(sentence), config.model_dump(exclude=NOT_THE_SPEECH))


def identity_of(sentence: TestSentence) -> str:
    """Hash a sentence with the contents of its files: models are compared by it."""
    references = [content_of(part) for part in sentence.reference.split(SEPARATOR)]
    return digest(sentence.text, sentence.language, sentence.voice, references, content_of(sentence.recording))


def key_of_recording(sentence: TestSentence) -> str:
    """Hash the recording of a sentence."""
    return digest("recording", content_of(sentence.recording))
