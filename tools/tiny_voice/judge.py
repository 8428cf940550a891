"""Measure a voice on unseen sentences, beside espeak-ng's own speech, that speech on the grid, and chance.

The phone error is that of the program's recogniser, or of one that ``tools.phone_recogniser`` trained; speaker
similarity and naturalness come from resemblyzer and Distill-MOS where they are installed (``pip install resemblyzer
distillmos``). ``grid`` is espeak-ng's speech with its periods moved to the grid, from which the vocoder learns.
"""

import importlib
import importlib.util
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from tools.tiny_voice.corpus import MARK, read_sentences
from tools.tiny_voice.grid import move_to_grid
from tools.tiny_voice.kit.clips import trimmed
from tools.tiny_voice.pack import is_low
from tools.tiny_voice.pitch import PitchTrack, track_pitch
from tools.tiny_voice.sample import write_recording
from tools.tiny_voice.speakers import BY_NAME, HELD_OUT, Speaker, say
from utils.cli import demo
from utils.config import SpeechConfig
from utils.core.batching import evenly_spaced
from utils.core.languages import AMHARIC
from utils.core.storage import make_folder
from utils.evaluation.voice_scores import PhoneJudge, speaker_encoder
from utils.media import audio
from utils.media.audio import Samples, resample
from utils.media.rates import FRAME_SAMPLES, OUTPUT_RATE, RATE
from utils.speech.synthesizer import Caches, Synthesizer, open_voice
from utils.studio import projects, sample_project
from utils.xtts.model import read_config

JUDGE_RATE = 16_000  # samples a second that the judges hear
NATURAL = 12  # sentences whose naturalness is measured: it costs a second each
SAME_PITCH = 0.3  # semitones
SAME_LENGTH = 0.2  # share
BATCH = 8  # sentences that are spoken together
# Short words that our front end reads without a long consonant; the mark makes the second one long.
PAIRS = ("ገና ዶሮ ኑሮ ሻማ ሎሚ ኬላ ሙሉ ጎራ ቡሌ ጣና ዳማ ቤቱ ሩዙ ማማ ዜማ ላቡ ቁና ሶኬ ሙሴ ጉሎ ሙና ኪሳ ፊቱ ሚና ካሳ ጉዳ ሱቁ ሮማ ዲና ባቡ ጋሪ").split()

Figures = dict[str, float | None]


@dataclass(frozen=True)
class Heard:
    """One sentence as a system says it, at 24 kHz without silence around it."""

    text: str
    speaker: str
    samples: Samples
    ended: bool = True

    @property
    def seconds(self) -> float:
        return len(self.samples) / OUTPUT_RATE

    @cached_property
    def heard(self) -> Samples:
        """Return the sound as the judges hear it."""
        return resample(self.samples, OUTPUT_RATE, JUDGE_RATE)

    @cached_property
    def pitch(self) -> PitchTrack:
        return track_pitch(self.samples, OUTPUT_RATE)

    @property
    def usual_pitch(self) -> float:
        voiced = self.pitch.f0[self.pitch.voiced]
        return float(np.median(voiced)) if voiced.size else float("nan")


class Voice:
    """A voice that speaks with references.

    Args:
        folder: The voice.
        work: Folder of cached voices.
        versions: How often it speaks each sentence; the program chooses one by its own checks.
    """

    def __init__(self, folder: Path, work: Path, versions: int) -> None:
        self.model: Synthesizer = open_voice(folder, "auto", "auto", caches=Caches(work / "voices"))
        self.versions = versions
        self.work_seconds = self.seconds = 0.0

    def speak(self, texts: Sequence[str], references: Mapping[str, Path]) -> list[Heard]:
        """Let speakers, each by a reference, speak the texts in turn."""
        said: list[Heard] = []
        for name, own in in_turn(texts, list(references)):
            config = SpeechConfig(reference=str(references[name]), tries=1, candidates=self.versions, batch_size=BATCH)
            for first in tqdm(range(0, len(own), BATCH), name):
                made = self.model.speak_many(own[first : first + BATCH], config)
                self.work_seconds += made[0].timings["total"]  # one clock for all of a batch
                for text, speech in zip(own[first:], made, strict=False):
                    self.seconds += speech.seconds
                    ended = all(one.ended for one in speech.utterances)
                    said.append(Heard(text, name, trimmed(speech.samples), ended))
        return said


class Judges:
    """Those who hear what is said.

    Args:
        recogniser: Weights of the phone recogniser.
        references: Clip of each speaker.
    """

    def __init__(self, recogniser: Path, references: Mapping[str, Path]) -> None:
        self.phones, self.encoder = PhoneJudge(recogniser), speaker_encoder()
        self.naturalness: Any = None
        if importlib.util.find_spec("distillmos"):
            self.naturalness = importlib.import_module("distillmos").ConvTransformerSQAModel().eval()
        self.voices = {
            name: self.encoder(audio.load(path, OUTPUT_RATE)) for name, path in references.items() if self.encoder
        }

    def phone_error(self, said: Sequence[Heard], texts: Sequence[str]) -> float | None:
        """Return the mean share of wrong phones."""
        return usual(self.phones.errors([one.heard for one in said], texts, AMHARIC.code))

    def similarities(self, said: Iterable[Heard]) -> list[float]:
        """Return the likeness of each sentence to its speaker; nothing without resemblyzer."""
        return [float(self.encoder(one.samples) @ self.voices[one.speaker]) for one in said if self.encoder]

    @torch.inference_mode()
    def natural(self, one: Heard) -> float | None:
        """Return how natural people find a sound, from 1 to 5; None without Distill-MOS."""
        return float(self.naturalness(torch.from_numpy(one.heard)[None])) if self.naturalness else None

    def figures(self, said: Sequence[Heard], real: Sequence[Heard], frame_rate: float) -> Figures:
        """Measure a system beside espeak-ng's speech of the same sentences."""
        lengths = [abs(one.seconds / other.seconds - 1) for one, other in zip(said, real, strict=True)]
        distances = [_semitones(one.usual_pitch, other.usual_pitch) for one, other in zip(said, real, strict=True)]
        pitch = np.concatenate([one.pitch.f0[one.pitch.voiced] for one in said])
        multiples = np.maximum(1, np.rint(pitch / frame_rate)) * frame_rate
        return {
            "phone_error": self.phone_error(said, [one.text for one in said]),
            "naturalness": usual(map(self.natural, said[:NATURAL])),
            "pitch_distance": usual(map(abs, distances)),
            "pitch_spread": usual(_semitones(one.pitch.f0[one.pitch.voiced], 1).std() for one in said),
            "at_frame_rate": usual(np.abs(_semitones(pitch, multiples)) <= SAME_PITCH),
            "hnr_db": usual(one.pitch.hnr for one in said),
            "similarity": usual(self.similarities(said)),
            "same_length": usual(length <= SAME_LENGTH for length in lengths),
            "endless": float(sum(not one.ended for one in said)),
        }


def judge(
    folder: Path, work: Path, sentences: int, versions: int, speakers: Sequence[str], recogniser: Path
) -> dict[str, Figures]:
    """Measure a voice on so many unseen sentences, which the speakers say in turn."""
    make_folder(work)
    voice, texts = Voice(folder, work, versions), evenly_spaced(read_sentences()["eval"], sentences)
    references = {name: _reference(work, BY_NAME[name]) for name in speakers}
    systems: dict[str, list[Heard]] = {"espeak": [], "grid": []}
    for name, own in in_turn(texts, speakers):
        block = 1 + is_low(BY_NAME[name])
        for text in own:
            sound = trimmed(say(text, BY_NAME[name]))
            moved = move_to_grid(sound, track_pitch(sound, RATE), block=block)
            for system, samples in (("espeak", sound), ("grid", moved)):
                systems[system].append(Heard(text, name, resample(samples, RATE, OUTPUT_RATE)))
    systems["free"] = voice.speak(texts, references)
    factor = voice.work_seconds / max(voice.seconds, 1e-9)
    judges = Judges(recogniser, references)
    frame_rate = read_config(folder).model_args.output_sample_rate / FRAME_SAMPLES
    found = {name: judges.figures(said, systems["espeak"], frame_rate) for name, said in systems.items()}
    others = [one.text for one in (*systems["free"][1:], systems["free"][0])]
    found["chance"] = {"phone_error": judges.phone_error(systems["free"], others)}
    marked = [word[:2] + MARK + word[2:] for word in PAIRS]
    plain, long = (voice.speak(words, references) for words in (PAIRS, marked))
    found["free"]["longer_ms"] = usual(1e3 * (b.seconds - a.seconds) for a, b in zip(plain, long, strict=True))
    rendered = [[trimmed(say(word, BY_NAME[speakers[0]])).size / RATE for word in words] for words in (PAIRS, marked)]
    found["espeak"]["longer_ms"] = usual(1e3 * np.subtract(rendered[1], rendered[0]))
    return found | {"free": found["free"] | {"real_time_factor": round(factor, 3)}}


def judge_fine_tunings(
    folder: Path, work: Path, sentences: int, versions: int, recogniser: Path
) -> dict[str, dict[str, Figures]]:
    """Fine-tune the voice on each held-out speaker as the demo does, and measure unseen sentences before and after."""
    texts = evenly_spaced(read_sentences()["eval"], sentences)
    found: dict[str, dict[str, Figures]] = {}
    for speaker in HELD_OUT:
        output = work / "fine-tuned"
        if (output / speaker.name).exists():  # an earlier one goes to the trash
            projects.delete(projects.find(speaker.name, output), output)
        project = projects.create(speaker.name, output)
        write_recording(project.dataset / sample_project.UPLOADS, speaker)
        config = demo.settings(demo.PRESET, project).model_copy(update={"custom_model": str(folder.resolve())})
        demo.prepare_and_train(project, config)
        references = {speaker.name: demo.reference_clip(project)}
        judges = Judges(recogniser, references)
        frame_rate = read_config(folder).model_args.output_sample_rate / FRAME_SAMPLES
        sounds = [resample(trimmed(say(text, speaker)), RATE, OUTPUT_RATE) for text in texts]
        real = [Heard(text, speaker.name, sound) for text, sound in zip(texts, sounds, strict=True)]
        before, after = (Voice(each, work, versions).speak(texts, references) for each in (folder, project.ready))
        likeness = [judges.similarities(said) for said in (before, after)]
        more = usual(own > base for base, own in zip(*likeness, strict=True))
        found[speaker.name] = {
            "before": judges.figures(before, real, frame_rate),
            "after": judges.figures(after, real, frame_rate) | {"more_similar": more},
        }
    return found


def table(found: Mapping[str, Figures], title: str) -> str:
    """Write figures down, one column for each system."""
    rows = [[title, *found], ["---"] * (len(found) + 1)]
    for name in dict.fromkeys(itertools.chain.from_iterable(found.values())):
        values = [figures.get(name) for figures in found.values()]
        rows.append([name.replace("_", " "), *("" if value is None else f"{value:.3g}" for value in values)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def in_turn(texts: Sequence[str], speakers: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Give each speaker its share of the texts."""
    for place, name in enumerate(speakers):
        yield name, texts[place :: len(speakers)]


def usual(values: Iterable[Any]) -> float | None:
    """Return the mean of the values that are known; None if none is."""
    known = np.array([value for value in values if value is not None], float)
    return round(float(np.nanmean(known)), 4) if np.isfinite(known).any() else None


def _reference(work: Path, speaker: Speaker) -> Path:
    """Write a clip of a speaker that says what the voice learnt."""
    path = work / f"{speaker.name}.wav"
    if not path.is_file():
        texts = sorted(read_sentences()["train"], key=len)[-2:]
        audio.save(path, np.concatenate([trimmed(say(text, speaker)) for text in texts])[: 8 * RATE], RATE)
    return path


def _semitones(pitch: Any, base: Any) -> Any:  # noqa: ANN401  # numbers or arrays
    return 12 * np.log2(pitch / base)
