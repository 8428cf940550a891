"""Measure a voice on unseen sentences, beside espeak-ng's own speech.

The phone error is that of the program's recogniser, or of one that ``tools.phone_recogniser`` trained. Three judges of
another make are asked where they are installed (``pip install hama==1.7 resemblyzer distillmos``): hama, which knows
other languages, for the kinds of consonants; resemblyzer for the speaker; Distill-MOS for how natural people find it.
"""

import importlib
import importlib.util
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
import torch
from tqdm import tqdm

from benchmarks.record import table as markdown
from tools.tiny_voice.corpus import MARK, read_sentences
from tools.tiny_voice.kit.clips import trimmed
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
from utils.xtts.language_packs import pack_for
from utils.xtts.model import read_config

JUDGE_RATE = 16_000  # samples a second that the judges hear
NATURAL = 12  # sentences whose naturalness is measured: it costs a second each
SAME_PITCH = 0.3  # semitones
BATCH = 8  # sentences that are spoken together
KINDS = {  # of consonants that listeners of another language take for one another
    phone: kind
    for kind, phones in {
        "P": "p b pʼ", "T": "t d tʼ θ ð", "K": "k g ɡ kʼ", "S": "s z sʼ ʃ ʒ", "C": "t͡ʃ d͡ʒ t͡ʃʼ",
        "F": "f v", "M": "m", "N": "n ɲ ŋ", "L": "l", "R": "r ɹ ɾ",
    }.items()
    for phone in phones.split()
}  # fmt: skip
CONSONANT = re.compile("|".join(sorted(KINDS, key=len, reverse=True)))
MARKS = re.compile("[ːˈˌʰ]")
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


def speak(voice: Synthesizer, versions: int, texts: Sequence[str], references: Mapping[str, Path]) -> list[Heard]:
    """Let speakers, each by a reference, speak the texts in turn with a voice.

    Of several versions of a sentence, the program chooses one by its own checks.
    """
    said: list[Heard] = []
    for name, own in in_turn(texts, list(references)):
        config = SpeechConfig(reference=str(references[name]), tries=1, candidates=versions, batch_size=BATCH)
        for first in tqdm(range(0, len(own), BATCH), name):
            made = voice.speak_many(own[first : first + BATCH], config)
            for text, speech in zip(own[first:], made, strict=False):
                ended = all(one.ended for one in speech.utterances)
                said.append(Heard(text, name, trimmed(speech.samples), ended))
    return said


class Judges:
    """Those who hear what is said.

    Args:
        folder: The voice that is judged.
        recogniser: Weights of the phone recogniser.
    """

    def __init__(self, folder: Path, recogniser: Path) -> None:
        self.phones, self.encoder = PhoneJudge(recogniser), speaker_encoder()
        self.consonants: Any = importlib.import_module("hama").ASRModel() if importlib.util.find_spec("hama") else None
        self.frame_rate = read_config(folder).model_args.output_sample_rate / FRAME_SAMPLES
        self.naturalness: Any = None
        if importlib.util.find_spec("distillmos"):
            self.naturalness = importlib.import_module("distillmos").ConvTransformerSQAModel().eval()
        self.voices: dict[str, Any] = {}

    def meet(self, references: Mapping[str, Path]) -> None:
        """Hear a clip of each speaker."""
        if self.encoder:
            self.voices |= {name: self.encoder(audio.load(path, OUTPUT_RATE)) for name, path in references.items()}

    def consonant_error(self, said: Sequence[Heard]) -> float | None:
        """Return the share of consonants of which another kind is heard; None without hama."""
        if self.consonants is None:
            return None
        pack, wanted, heard = pack_for(AMHARIC.code), [], []
        for one in said:
            wanted.append(_kinds(CONSONANT.findall(pack.phonemize(pack.normalize(one.text)))))
            heard.append(_kinds(self.consonants.transcribe_waveform(one.heard, JUDGE_RATE).phonemes))
        return float(jiwer.wer(wanted, heard))

    def similarity(self, one: Heard) -> float | None:
        """Return the likeness of a sentence to its speaker; None without resemblyzer."""
        return float(self.encoder(one.samples) @ self.voices[one.speaker]) if self.encoder else None

    @torch.inference_mode()
    def natural(self, one: Heard) -> float | None:
        """Return how natural people find a sound, from 1 to 5; None without Distill-MOS."""
        return float(self.naturalness(torch.from_numpy(one.heard)[None])) if self.naturalness else None

    def figures(self, said: Sequence[Heard], real: Sequence[Heard]) -> Figures:
        """Measure a system beside espeak-ng's speech of the same sentences."""
        texts = [one.text for one in said]
        distances = [_semitones(one.usual_pitch, other.usual_pitch) for one, other in zip(said, real, strict=True)]
        lengths = [one.seconds / other.seconds for one, other in zip(said, real, strict=True)]
        pitch = np.concatenate([one.pitch.f0[one.pitch.voiced] for one in said])
        multiples = np.maximum(1, np.rint(pitch / self.frame_rate)) * self.frame_rate
        return {
            "phone_error": usual(self.phones.errors([one.heard for one in said], texts, AMHARIC.code)),
            "consonant_error": self.consonant_error(said),
            "naturalness": usual(map(self.natural, said[:NATURAL])),
            "pitch_distance": usual(map(abs, distances)),
            "pitch_spread": usual(_semitones(one.pitch.f0[one.pitch.voiced], 1).std() for one in said),
            "at_frame_rate": usual(np.abs(_semitones(pitch, multiples)) <= SAME_PITCH),
            "similarity": usual(map(self.similarity, said)),
            "right_length": usual(abs(ratio - 1) <= 0.2 for ratio in lengths),
            "endless": float(sum(not one.ended for one in said)),
        }


def judge(
    folder: Path, work: Path, sentences: int, versions: int, speakers: Sequence[str], recogniser: Path
) -> dict[str, Figures]:
    """Measure a voice on so many unseen sentences, which the speakers say in turn."""
    make_folder(work)
    texts = evenly_spaced(read_sentences()["eval"], sentences)
    references = {name: _reference(work, BY_NAME[name]) for name in speakers}
    judges = Judges(folder, recogniser)
    judges.meet(references)
    real = rendered(texts, speakers)
    marked = [word[:2] + MARK + word[2:] for word in PAIRS]
    voice = open_voice(folder, "auto", "auto", caches=Caches(work / "voices"))
    said, words, long = (speak(voice, versions, each, references) for each in (texts, PAIRS, marked))
    real_words, real_long = (rendered(each, speakers) for each in (PAIRS, marked))
    return {
        "espeak": judges.figures(real, real) | longer(real_words, real_long),
        "voice": judges.figures(said, real) | longer(words, long),
    }


def longer(words: Sequence[Heard], long: Sequence[Heard]) -> Figures:
    """Measure how much longer a word gets by its long consonant."""
    return {"longer_ms": usual(1e3 * (b.seconds - a.seconds) for a, b in zip(words, long, strict=True))}


def rendered(texts: Sequence[str], speakers: Sequence[str]) -> list[Heard]:
    """Let espeak-ng speak the texts, the speakers in turn."""
    return [
        Heard(text, name, resample(trimmed(say(text, BY_NAME[name])), RATE, OUTPUT_RATE))
        for name, own in in_turn(texts, speakers)
        for text in own
    ]


def judge_fine_tunings(
    folder: Path, work: Path, sentences: int, versions: int, recogniser: Path
) -> dict[str, dict[str, Figures]]:
    """Fine-tune the voice on each held-out speaker as the demo does, and measure unseen sentences before and after."""
    texts, caches = evenly_spaced(read_sentences()["eval"], sentences), Caches(work / "voices")
    untrained, judges = open_voice(folder, "auto", "auto", caches=caches), Judges(folder, recogniser)
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
        judges.meet(references)
        real = rendered(texts, [speaker.name])
        found[speaker.name] = {
            name: judges.figures(speak(voice, versions, texts, references), real)
            for name, voice in (
                ("before", untrained),
                ("after", open_voice(project.ready, "auto", "auto", caches=caches)),
            )
        }
    return found


def table(found: Mapping[str, Figures], title: str) -> str:
    """Write figures down, one column for each system."""
    rows = []
    for name in dict.fromkeys(itertools.chain.from_iterable(found.values())):
        values = [figures.get(name) for figures in found.values()]
        rows.append([name.replace("_", " "), *("" if value is None else f"{value:.3g}" for value in values)])
    return markdown([title, *found], rows)


def in_turn(texts: Sequence[str], speakers: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Give each speaker its share of the texts."""
    for place, name in enumerate(speakers):
        yield name, texts[place :: len(speakers)]


def usual(values: Iterable[Any]) -> float | None:
    """Return the mean of the values that are known; None if none is."""
    known = np.array([value for value in values if value is not None], float)
    return round(float(np.nanmean(known)), 4) if np.isfinite(known).any() else None


def _kinds(phones: Iterable[str]) -> str:
    """Return the kinds of the consonants; a recogniser may hear a long one twice."""
    kinds = (KINDS.get(MARKS.sub("", phone), "") for phone in phones)
    return " ".join(kind for kind, _ in itertools.groupby(filter(None, kinds))) or "-"


def _reference(work: Path, speaker: Speaker) -> Path:
    """Write a clip of a speaker that says what the voice learnt."""
    path = work / f"{speaker.name}.wav"
    if not path.is_file():
        texts = sorted(read_sentences()["train"], key=len)[-2:]
        audio.save(path, np.concatenate([trimmed(say(text, speaker)) for text in texts])[: 8 * RATE], RATE)
    return path


def _semitones(pitch: Any, base: Any) -> Any:  # noqa: ANN401  # numbers or arrays
    return 12 * np.log2(pitch / base)
