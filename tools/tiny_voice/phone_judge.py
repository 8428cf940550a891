"""A recogniser of phones that judges speech: trained with CTC on espeak-ng voices that no voice here learns from.

It shares neither weights nor voices with what it judges, nor weights with the recogniser that the program ships. Its
own error on espeak-ng's speech of unseen sentences is reported beside every figure that it gives.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jiwer
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from tools.tiny_voice.corpus import Corpus, choose_takes
from tools.tiny_voice.espeak import PHONEMES, VOWELS, split_phones
from tools.tiny_voice.progress import Progress
from tools.tiny_voice.speakers import HELD_OUT, SPEAKERS, Speaker, speak
from tools.tiny_voice.training_loop import TrainingLoop
from utils.core.languages import AMHARIC
from utils.core.storage import make_folder
from utils.media.audio import Samples, resample
from utils.media.rates import RATE as ESPEAK_RATE
from utils.xtts.language_packs import pack_for

RATE, BANDS, WINDOW, HOP = 16_000, 64, 512, 160
LONG = "ː"
FRAMES_A_SECOND = RATE // (2 * HOP)
PHONES = ("", *PHONEMES, LONG)  # the first is CTC's blank
IDS = {phone: number for number, phone in enumerate(PHONES)}
VARIANTS = (
    "Andy anika antonio benjamin boris caleb david ed edward edward2 Gene gustave iven iven2 iven3 john kaukovalta Lee "
    "marcelo Marco Mario Michael miguel norbert quincy rob robert sandro steph steph2 steph3 victor travis m2 m5 m6 m8 "
    "Jacky Diogo Henrique grandma Tweaky Nguyen Denis Hugo"
).split()
UTTERANCES = 2_400
STEPS = 900
BATCH = 12
LEARNING_RATE = 2e-3
FRAMES = 0.5  # weight of naming each frame beside CTC
SIZES = 0.85, 1.3  # factors of a speaker's pitch, formants and pace
SEED = 1117  # of texts, voices and weights; the voice has seeds from 1 to 7
TRACK, RECOGNISER = "speech.pt", "recogniser"

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Utterance:
    """Speech at 16 kHz, its phones, and the phone of each frame of 20 ms."""

    samples: Samples
    phones: Ids
    frames: Ids


class Recogniser(nn.Module):
    """Convolutions over mel bands, two recurrent layers, and one choice for every 20 ms."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.first = nn.Conv1d(BANDS, width, 5, padding=2)
        self.second = nn.Conv1d(width, width, 5, stride=2, padding=2)
        self.memory = nn.GRU(width, width, num_layers=2, bidirectional=True, batch_first=True, dropout=0.1)
        self.phones, self.names = (nn.Linear(2 * width, len(PHONES)) for _ in range(2))

    def forward(self, mels: Tensor) -> tuple[Tensor, Tensor]:
        """Return log probabilities for CTC, and the logits of each frame's name, of shape (clips, frames, phones)."""
        hidden = functional.gelu(self.second(functional.gelu(self.first(mels)))).mT
        found, _ = self.memory(hidden)
        return self.phones(found).log_softmax(-1), self.names(found)


class PhoneJudge:
    """The trained recogniser."""

    def __init__(self, recogniser: Recogniser) -> None:
        self.recogniser = recogniser.eval()

    @classmethod
    def open(cls, folder: Path, progress: Progress) -> "PhoneJudge":
        """Train the recogniser, or continue, unless it is in the folder already."""
        make_folder(folder)
        torch.manual_seed(SEED)
        recogniser = Recogniser()
        loop = TrainingLoop(folder, {RECOGNISER: recogniser}, STEPS, LEARNING_RATE, SEED, progress)
        loop.run(_Lesson(recogniser, _speech(folder, progress)).step)
        return cls(recogniser)

    @torch.inference_mode()
    def transcribe(self, sound: Samples, rate: int) -> list[str]:
        """Return the phones that are heard; a geminate is a consonant and a length mark."""
        heard = resample(sound, rate, RATE) if rate != RATE else sound
        if heard.size < WINDOW:
            return []
        best = self.recogniser(log_mels(heard)[None])[0][0].argmax(-1)
        return [PHONES[number] for number in torch.unique_consecutive(best).tolist() if number]

    @torch.inference_mode()
    def seconds(self, phones: Sequence[str], sound: Samples, rate: int) -> list[float]:
        """Return how long each phone lasts along the best alignment; a geminate is one phone of its own kind."""
        names = self.recogniser(log_mels(resample(sound, rate, RATE))[None])[1][0].log_softmax(-1)
        own = [[IDS[phone], IDS[LONG]] if phone not in VOWELS else [IDS[phone]] for phone in phones]
        states = [[0], *own, [0]]  # silence before and after
        scores = torch.stack([names[:, state].amax(1) for state in states], dim=1).double().numpy()
        return [float(frames) / FRAMES_A_SECOND for frames in align(scores)[1:-1]]

    def errors(self, text: str, sound: Samples, rate: int) -> tuple[int, int]:
        """Return how many phones are wrong, and how many the text has."""
        wanted = phones_of(text)
        result = jiwer.process_words(" ".join(wanted), " ".join(self.transcribe(sound, rate)) or "-")
        return result.substitutions + result.deletions + result.insertions, len(wanted)


def align(scores: npt.NDArray[np.float64]) -> Ids:
    """Return how many frames each state lasts when all follow one another, for scores of shape (frames, states)."""
    count, states = scores.shape
    best = np.full(states, -np.inf)
    best[0] = scores[0, 0]
    moved = np.zeros(scores.shape, bool)
    for frame in range(1, count):
        before = np.concatenate([[-np.inf], best[:-1]])
        moved[frame] = before > best
        best = np.maximum(before, best) + scores[frame]
    frames, state = np.zeros(states, np.int64), states - 1
    for frame in range(count - 1, -1, -1):
        frames[state] += 1
        state -= int(moved[frame, state])
    return frames


def phones_of(text: str) -> list[str]:
    """Return the phones of a text as the recogniser names them."""
    pack = pack_for(AMHARIC.code)
    return _named([phone for word in pack.phonemize(pack.normalize(text)).split() for phone in _split(word)])


def log_mels(sound: Samples) -> Tensor:
    """Return logarithmic mel bands of 10 ms, each with mean 0 and deviation 1."""
    samples = torch.from_numpy(np.ascontiguousarray(sound, np.float32))
    spectrum = torch.stft(samples, WINDOW, HOP, window=torch.hann_window(WINDOW), return_complex=True).abs().square()
    found = (_filters() @ spectrum + 1e-6).log()
    return (found - found.mean(1, keepdim=True)) / (found.std(1, keepdim=True) + 0.2)


@cache
def _filters() -> Tensor:
    import torchaudio

    filters: Tensor = torchaudio.functional.melscale_fbanks(WINDOW // 2 + 1, 60.0, 7600.0, BANDS, RATE)
    return filters.T.contiguous()


def _split(word: str) -> list[str]:
    letters = "".join(letter for letter in word if letter not in ".,;:?!")
    return split_phones(letters) if letters else []


def _named(phones: Sequence[str]) -> list[str]:
    """Name the second of two equal consonants as length."""
    return [
        LONG if number and phone == phones[number - 1] and phone not in VOWELS else phone
        for number, phone in enumerate(phones)
    ]


def _speech(folder: Path, progress: Progress) -> list[Utterance]:
    """Let voices that nothing else uses speak sentences and words."""
    path = folder / TRACK
    if not path.is_file():
        taken = {speaker.variant for speaker in (*SPEAKERS, *HELD_OUT)}
        random = np.random.default_rng(SEED)
        takes = choose_takes(Corpus(sentences=2_000, takes=1, phrases=600, word_lists=2_000, judged=1, seed=SEED))
        texts = [take.text for take in takes if take.split == "train"]
        drawn = [texts[number] for number in random.permutation(len(texts))[:UTTERANCES]]
        variants = [variant for variant in VARIANTS if variant not in taken]
        spoken = [_record(text, variants[number % len(variants)], random) for number, text in enumerate(drawn)]
        torch.save([(torch.from_numpy(one.samples), one.phones, one.frames) for one in spoken], path)
        progress.say(f"{sum(one.samples.size for one in spoken) / RATE / 3600:.2f} hours spoken")
    return [Utterance(samples.numpy(), *rest) for samples, *rest in torch.load(path, weights_only=False)]


def _record(text: str, variant: str, random: np.random.Generator) -> Utterance:
    pack = pack_for(AMHARIC.code)
    pitch, pace, spread = (int(random.integers(*ends)) for ends in ((15, 85), (120, 185), (25, 80)))
    speech = speak(pack.phonemize(pack.normalize(text)), Speaker(variant, variant, pitch, pace, spread))
    size = random.uniform(*SIZES)  # smaller and larger speakers, at another pace
    samples = resample(speech.samples, ESPEAK_RATE, RATE)
    samples = np.interp(np.arange(0, samples.size - 1, size), np.arange(samples.size), samples).astype(np.float32)
    names = _named([phone.name for phone in speech.phones])
    frames = np.zeros(samples.size // (2 * HOP) + 1, np.int64)
    for name, phone in zip(names, speech.phones, strict=True):
        start, end = (round(moment / size * FRAMES_A_SECOND) for moment in (phone.start, phone.end))
        frames[start:end] = IDS.get(name, 0)
    return Utterance(samples, np.array([IDS[phone] for phone in phones_of(text)]), frames)


class _Lesson:
    """What one update of the recogniser is."""

    def __init__(self, recogniser: Recogniser, speech: Sequence[Utterance]) -> None:
        self.recogniser = recogniser
        self.speech = sorted(speech, key=lambda one: one.samples.size)

    def step(self, _: int, random: np.random.Generator) -> Iterator[tuple[str, Tensor]]:
        """Yield the loss of clips of similar length."""
        first = int(random.integers(0, len(self.speech) - BATCH))
        clips = self.speech[first : first + BATCH]
        longest = max(one.samples.size for one in clips)
        mels = torch.stack(
            [log_mels(np.pad(_vary(one.samples, random), (0, longest - one.samples.size))) for one in clips]
        )
        found, names = self.recogniser(mels)
        sizes = torch.tensor([min(found.shape[1], len(one.frames)) for one in clips])
        phones = torch.from_numpy(np.concatenate([one.phones for one in clips]))
        counts = torch.tensor([len(one.phones) for one in clips])
        ctc = functional.ctc_loss(found.transpose(0, 1), phones, sizes, counts, zero_infinity=True)
        frames = torch.stack(
            [functional.pad(torch.from_numpy(one.frames), (0, found.shape[1]))[: found.shape[1]] for one in clips]
        )
        yield RECOGNISER, ctc + FRAMES * functional.cross_entropy(names.flatten(0, 1), frames.flatten())


def _vary(sound: Samples, random: np.random.Generator) -> Samples:
    """Change the tone, and add noise, so that the recogniser listens to more than espeak-ng's exact spectra."""
    spectrum = np.fft.rfft(sound)
    gain = np.interp(np.linspace(0, 5, spectrum.size), np.arange(6), random.uniform(-6, 6, 6))
    tilted = np.fft.irfft(spectrum * 10 ** (gain / 20), sound.size)
    level = float(np.sqrt(np.mean(np.square(tilted)))) * 10 ** (-random.uniform(12, 45) / 20)
    return (tilted + level * random.standard_normal(sound.size)).astype(np.float32)
