"""Independent measures of a voice on unseen sentences, each beside espeak-ng's own speech, copy-synthesis and chance.

None of them knows the voice: the phone recogniser learnt other voices of espeak-ng, pitch and spectra are computed, and
speaker similarity, a second recogniser and naturalness come from resemblyzer, hama and Distill-MOS where installed.
``grid`` is espeak-ng's speech with its periods moved to the grid, from which the vocoder learns.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tools.tiny_voice.audio import normalize_loudness, render, trim_silence
from tools.tiny_voice.copies import CopySynthesis
from tools.tiny_voice.corpus import MARK, read_sentences
from tools.tiny_voice.espeak import VOWELS
from tools.tiny_voice.grid import move_to_grid
from tools.tiny_voice.outside_judges import ConsonantJudge, NaturalnessJudge
from tools.tiny_voice.pack import is_low
from tools.tiny_voice.phone_judge import LONG, PhoneJudge, phones_of
from tools.tiny_voice.pitch import HOP, PitchTrack, pitch_correlation, track_pitch
from tools.tiny_voice.progress import Progress
from tools.tiny_voice.speakers import BY_NAME, JUDGED, Speaker
from utils.config import SpeechConfig
from utils.core.batching import evenly_spaced
from utils.core.storage import make_folder
from utils.evaluation.metrics import mel_cepstra, warped_distance
from utils.media import audio
from utils.media.audio import Samples, resample
from utils.media.rates import FRAME_SAMPLES, OUTPUT_RATE, RATE
from utils.speech.synthesizer import Caches, Synthesizer, open_voice
from utils.xtts.model import read_config

BUZZ = OUTPUT_RATE / 256  # Hz: the frame rate of a vocoder at 24 kHz, and the pitch that it falls into
LOW_BAND = 1_400.0  # Hz
NATURAL = 12  # sentences whose naturalness is measured: it costs a second each
SAME_PITCH = 0.3  # semitones
SAME_LENGTH = 0.2  # share
CANDIDATES, MATCHED = 40, 0.07  # sentences of a retrieval, and by how much their lengths differ
POOL = 600  # sentences that the candidates are chosen from
LENGTHENED = 0.04  # seconds
EMPTY = 0.2  # seconds
CEPSTRA_HOP = 0.01  # seconds
EVERY = 2  # frames of 10 ms: halves what the paths cost twice over
BATCH = 8  # sentences that are spoken together
SYSTEMS = ("espeak", "grid", "mel", "codes", "latents", "free")
# Short words that our front end reads without a long consonant; the mark makes the second one long.
PAIRS = ("ገና ዶሮ ኑሮ ሻማ ሎሚ ኬላ ሙሉ ጎራ ቡሌ ጣና ዳማ ቤቱ ሩዙ ማማ ዜማ ላቡ ቁና ሶኬ ሙሴ ጉሎ ሙና ኪሳ ፊቱ ሚና ካሳ ጉዳ ሱቁ ሮማ ዲና ባቡ ጋሪ").split()


@dataclass(frozen=True)
class Heard:
    """One sentence as a system says it, at 24 kHz without silence around it."""

    text: str
    speaker: str
    samples: Samples
    ended: bool = True

    @cached_property
    def pitch(self) -> PitchTrack:
        return track_pitch(self.samples, OUTPUT_RATE)

    @cached_property
    def low_pitch(self) -> PitchTrack:
        """Return the pitch of what lies below 1.4 kHz, whose strength tells of harmonics that are heard as a voice."""
        spectrum = np.fft.rfft(self.samples)
        spectrum[np.fft.rfftfreq(len(self.samples), 1 / OUTPUT_RATE) > LOW_BAND] = 0
        return track_pitch(np.fft.irfft(spectrum, len(self.samples)).astype(np.float32), OUTPUT_RATE)

    @property
    def seconds(self) -> float:
        return len(self.samples) / OUTPUT_RATE


def judge(
    folder: Path, work: Path, sentences: int, versions: int, progress: Progress, speakers: Sequence[str] = JUDGED
) -> dict[str, Any]:
    """Measure a voice.

    Args:
        folder: The voice.
        work: Folder of the judges, their references and cached voices.
        sentences: How many unseen sentences are spoken.
        versions: How often the voice speaks each; the program chooses one of them.
        progress: Hears how far it is.
        speakers: Who speaks them in turn.
    """
    make_folder(work)
    phones = PhoneJudge.open(work / "phones", progress)
    model = open_voice(folder, "auto", "auto", caches=Caches(work / "voices"))
    texts = evenly_spaced(read_sentences()["eval"], sentences)
    references = {name: _reference(work, BY_NAME[name]) for name in speakers}
    systems, factor = _systems(folder, model, texts, references, versions, progress)
    outside = Similarity(references), ConsonantJudge(), NaturalnessJudge()
    frames = read_config(folder).model_args.output_sample_rate / FRAME_SAMPLES
    figures = {name: _figures(said, systems["espeak"], phones, outside) for name, said in systems.items()}
    for name, said in systems.items():
        figures[name]["at_frame_rate"] = _rounded(at_rate(_voiced_pitch(said), frames))
    figures["chance"] = _chance(systems["free"], systems["espeak"], phones)
    return {
        "sentences": sentences,
        **figures,
        "retrieval": _retrieval(systems["free"], progress),
        "gemination": _gemination(model, references, phones, progress),
        "real_time_factor": round(factor, 3),
    }


def _reference(work: Path, speaker: Speaker) -> Path:
    """Write a clip of a speaker that says what the voice learnt."""
    path = work / f"{speaker.name}.wav"
    if not path.is_file():
        texts = sorted(read_sentences()["train"], key=len)[-2:]
        audio.save(path, np.concatenate([render(text, speaker) for text in texts])[: 8 * RATE], RATE)
    return path


def _systems(
    folder: Path,
    model: Synthesizer,
    texts: Sequence[str],
    references: Mapping[str, Path],
    versions: int,
    progress: Progress,
) -> tuple[dict[str, list[Heard]], float]:
    """Let espeak-ng, copies and the voice speak the texts, the speakers in turn."""
    systems: dict[str, list[Heard]] = {name: [] for name in SYSTEMS}
    for name, own in _in_turn(texts, list(references)):
        copying = CopySynthesis(folder, references[name])
        for text in own:
            sound = normalize_loudness(render(text, BY_NAME[name]))
            systems["espeak"].append(_heard(text, name, sound, RATE))
            moved = move_to_grid(sound, track_pitch(sound, RATE), block=1 + is_low(BY_NAME[name]))
            systems["grid"].append(_heard(text, name, moved, RATE))
            for kind, (copied, rate) in copying.copies(text, sound).items():
                systems[kind].append(_heard(text, name, copied, rate))
    systems["free"], factor = speak(model, texts, references, progress, versions)
    return systems, factor


def speak(
    model: Synthesizer, texts: Sequence[str], references: Mapping[str, Path], progress: Progress, versions: int
) -> tuple[list[Heard], float]:
    """Let speakers, each by a reference, speak the texts in turn; return that, and seconds of work for one of sound.

    Of several versions of a sentence, the program chooses one by its own checks.
    """
    turns = list(_in_turn(texts, list(references)))
    batches = [(name, own[at : at + BATCH]) for name, own in turns for at in range(0, len(own), BATCH)]
    said: list[Heard] = []
    work = seconds = 0.0
    for name, batch in progress.over(batches, len(batches)):
        settings = SpeechConfig(reference=str(references[name]), tries=1, candidates=versions, batch_size=BATCH)
        made = model.speak_many(batch, settings)
        work += made[0].timings["total"]  # one clock for all of a batch
        seconds += sum(speech.seconds for speech in made)
        for text, speech in zip(batch, made, strict=True):
            ended = all(one.ended for one in speech.utterances)
            said.append(Heard(text, name, trim_silence(speech.samples), ended))
    return said, work / max(seconds, 1e-9)


def _in_turn(texts: Sequence[str], speakers: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    for place, name in enumerate(speakers):
        yield name, texts[place :: len(speakers)]


def _heard(text: str, speaker: str, sound: Samples, rate: int) -> Heard:
    return Heard(text, speaker, trim_silence(resample(sound, rate, OUTPUT_RATE) if rate != OUTPUT_RATE else sound))


def _figures(
    said: Sequence[Heard],
    real: Sequence[Heard],
    phones: PhoneJudge,
    outside: "tuple[Similarity, ConsonantJudge, NaturalnessJudge]",
) -> dict[str, Any]:
    similarity, consonants, naturalness = outside
    wrong = np.array([phones.errors(one.text, one.samples, OUTPUT_RATE) for one in said])
    missed = np.array([consonants.errors(one.text, one.samples, OUTPUT_RATE) for one in said])
    tracks = [one.pitch for one in said]
    lengths = np.array([one.seconds / other.seconds for one, other in zip(said, real, strict=True)])
    return {
        "phone_error": _rounded(wrong[:, 0].sum() / wrong[:, 1].sum()),
        "consonant_error": _rounded(missed[:, 0].sum() / missed[:, 1].sum()) if missed.any() else None,
        "naturalness": _rounded(_usual(naturalness.score(one.samples, OUTPUT_RATE) for one in said[:NATURAL])),
        "pitch_correlation": _rounded(_usual(_correlation(*pair) for pair in zip(said, real, strict=True))),
        "pitch_distance": _rounded(_usual(pitch_distance(*pair) for pair in zip(said, real, strict=True))),
        "pitch_spread": _rounded(_usual(map(_spread, tracks))),
        "at_94_hz": _rounded(at_rate(_voiced_pitch(said), BUZZ)),
        "hnr_db": _rounded(_usual(track.hnr for track in tracks)),
        "hnr_below_1400_hz": _rounded(_usual(one.low_pitch.hnr for one in said)),
        "similarity": _rounded(_usual(similarity.each(said))),
        "same_length": _rounded(float(np.mean(np.abs(lengths - 1) <= SAME_LENGTH))),
        "endless": sum(not one.ended for one in said),
        "empty": sum(one.seconds < EMPTY for one in said),
        "lufs": _rounded(_usual(map(_loudness, said))),
    }


def _chance(said: Sequence[Heard], real: Sequence[Heard], phones: PhoneJudge) -> dict[str, Any]:
    """Measure the sentences against another one's text and speech."""
    others = [*real[1:], real[0]]
    wrong = np.array(
        [phones.errors(other.text, one.samples, OUTPUT_RATE) for one, other in zip(said, others, strict=True)]
    )
    return {
        "phone_error": _rounded(wrong[:, 0].sum() / wrong[:, 1].sum()),
        "pitch_correlation": _rounded(_usual(_correlation(*pair) for pair in zip(said, others, strict=True))),
    }


def _correlation(one: Heard, other: Heard) -> float:
    """Return the correlation of pitch along the best path through both."""
    import librosa

    first, second = (mel_cepstra(each.samples) for each in (one, other))
    if len(first) < 5 or len(second) < 5:
        return float("nan")
    first, second = ((each - each.mean(0)) / (each.std(0) + 1e-3) for each in (first, second))
    _, path = librosa.sequence.dtw(first.T, second.T)
    return pitch_correlation(_warped(one.pitch, path[::-1, 0]), _warped(other.pitch, path[::-1, 1]))


def _warped(track: PitchTrack, path: npt.NDArray[np.int64]) -> PitchTrack:
    frames = np.minimum(np.rint((path * CEPSTRA_HOP + 0.02) / HOP).astype(int), len(track.f0) - 1)
    return PitchTrack(track.f0[frames], track.strength[frames])


def pitch_distance(one: Heard, other: Heard) -> float:
    """Return how far the median pitch is off, in semitones."""
    medians = [
        np.median(each.pitch.f0[each.pitch.voiced]) if each.pitch.voiced.any() else np.nan for each in (one, other)
    ]
    return float(abs(12 * np.log2(medians[0] / medians[1])))


def _spread(track: PitchTrack) -> float:
    return float(np.std(12 * np.log2(track.f0[track.voiced]))) if track.voiced.any() else float("nan")


def _voiced_pitch(said: Sequence[Heard]) -> npt.NDArray[np.float64]:
    return np.concatenate([one.pitch.f0[one.pitch.voiced] for one in said])


def at_rate(f0: npt.NDArray[np.float64], rate: float) -> float:
    """Return the share of voiced frames whose pitch is a rate, or a multiple."""
    multiple = np.maximum(1, np.rint(f0 / rate)) * rate
    return float(np.mean(np.abs(12 * np.log2(f0 / multiple)) <= SAME_PITCH)) if len(f0) else float("nan")


def _loudness(one: Heard) -> float:
    from pyloudnorm import Meter

    if one.seconds < 0.5:
        return float("nan")
    return float(Meter(OUTPUT_RATE).integrated_loudness(one.samples.astype(np.float64)))


class Similarity:
    """Resemblyzer's cosine with the reference of each speaker; nothing where it is not installed."""

    def __init__(self, references: Mapping[str, Path]) -> None:
        self.encoder: Any = None
        with contextlib.suppress(ImportError):
            from resemblyzer import VoiceEncoder

            self.encoder = VoiceEncoder("cpu", verbose=False)
        self.known = {name: self._embedding(audio.load(path, RATE), RATE) for name, path in references.items()}

    def each(self, said: Sequence[Heard]) -> list[float]:
        """Return the likeness of each sentence; nothing without resemblyzer."""
        if self.encoder is None:
            return []
        return [
            float(self._embedding(one.samples, OUTPUT_RATE) @ self.known[one.speaker]) if one.seconds >= EMPTY else 0.0
            for one in said
        ]

    def _embedding(self, sound: Samples, rate: int) -> npt.NDArray[np.float32]:
        if self.encoder is None:
            return np.zeros(1, np.float32)
        found: npt.NDArray[np.float32] = self.encoder.embed_utterance(normalize_loudness(resample(sound, rate, 16_000)))
        return found


def _retrieval(said: Sequence[Heard], progress: Progress) -> dict[str, Any]:
    """Find each sentence among others of the same length that espeak-ng says in the same voice."""
    texts = evenly_spaced(read_sentences()["train"], POOL)
    right = {"by_sound": 0, "by_length": 0}
    tried = 0
    for name in dict.fromkeys(one.speaker for one in said):
        pool = [rendered(text, name) for text in texts]
        own = [one for one in said if one.speaker == name]
        for one in progress.over(own, len(own)):
            wanted = rendered(one.text, name)
            matched = [each for each in pool if abs(each.size / wanted.size - 1) <= MATCHED][:CANDIDATES]
            if len(matched) < CANDIDATES or one.seconds < EMPTY:
                continue
            tried += 1
            known = [wanted, *matched]
            spoken = _cepstra(one.samples)
            distances = [warped_distance(spoken, _cepstra(each)) for each in known]
            right["by_sound"] += int(np.argmin(distances)) == 0
            right["by_length"] += int(np.argmin([abs(each.size - one.samples.size) for each in known])) == 0
    found = {kind: _rounded(count / max(1, tried)) for kind, count in right.items()}
    return {**found, "chance": _rounded(1 / (CANDIDATES + 1)), "tried": tried}


def rendered(text: str, speaker: str) -> Samples:
    return trim_silence(resample(render(text, BY_NAME[speaker]), RATE, OUTPUT_RATE))


def _cepstra(sound: Samples) -> npt.NDArray[np.float32]:
    found = mel_cepstra(sound)[::EVERY]
    return np.asarray((found - found.mean(0)) / (found.std(0) + 1e-3), np.float32)


def _gemination(
    model: Synthesizer, references: Mapping[str, Path], phones: PhoneJudge, progress: Progress
) -> dict[str, Any]:
    """Say words with and without a long consonant, and measure how much longer it is."""
    longer: dict[str, list[float]] = {"espeak": [], "free": []}
    for number, word in enumerate(progress.over(PAIRS, len(PAIRS))):
        name = list(references)[number % len(references)]
        texts = [word, word[:2] + MARK + word[2:]]
        config = SpeechConfig(reference=str(references[name]), tries=1, batch_size=2)
        spoken = [trim_silence(each.samples) for each in model.speak_many(texts, config)]
        for kind, sounds in (("free", spoken), ("espeak", [rendered(text, name) for text in texts])):
            seconds = [_consonant(phones, text, sound) for text, sound in zip(texts, sounds, strict=True)]
            longer[kind].append(seconds[1] - seconds[0])
    return {
        kind: {
            "longer_ms": round(1000 * float(np.mean(values)), 1),
            "error_ms": round(1000 * float(np.std(values)) / math.sqrt(len(values)), 1),
            "lengthened": _rounded(float(np.mean(np.array(values) >= LENGTHENED))),
        }
        for kind, values in longer.items()
    }


def _consonant(phones: PhoneJudge, text: str, sound: Samples) -> float:
    """Return how long the second consonant of a word lasts."""
    found = [phone for phone in phones_of(text) if phone != LONG]
    consonants = [place for place, phone in enumerate(found) if phone not in VOWELS]
    place = next(place for place in consonants if place and found[place - 1] in VOWELS)
    return phones.seconds(found, sound, OUTPUT_RATE)[place]


def _usual(values: Any) -> float:  # noqa: ANN401  # any iterable of numbers
    known = [value for value in values if math.isfinite(value)]
    return float(np.mean(known)) if known else float("nan")


def _rounded(value: float) -> float | None:
    return round(float(value), 4) if math.isfinite(value) else None
