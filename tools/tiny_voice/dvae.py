"""The DVAE stage: from the sound of all voices to a few hundred codes, and back to a mel to measure what is kept."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tools.tiny_voice.audio import ENDING, WAVS
from tools.tiny_voice.continuing import load_fitting
from tools.tiny_voice.corpus import read_takes
from tools.tiny_voice.recipe import Dvae
from tools.tiny_voice.stages import BuildContext
from tools.tiny_voice.training_loop import Figures, TrainingLoop, crops
from tools.untrained import new_dvae
from utils.core.batching import evenly_spaced
from utils.core.storage import atomic_writer
from utils.media import audio
from utils.media.rates import RATE
from utils.xtts.files import DVAE_FILE, MEL_FILE

DVAE = "dvae"
TRACK = "mel.npy"
COMMITMENT = 0.25  # weight of the distance between sound and code, as usual for such codebooks
REVIVED = 0.6  # share of the training during which unused codes get another place
OFTEN = 20  # steps between two looks for unused codes
UNUSED = 0.3  # times the usual use of a code
JUDGED = 4_000  # frames at the end of the track that are never learnt from


def train_dvae(context: BuildContext) -> dict[str, Any]:
    """Train the DVAE and write it as the hub has it, with what each band of a mel is divided by."""
    settings, folder = context.recipe.dvae, context.folder("dvae")
    track = _track(context)
    sample = torch.from_numpy(track[: 1 << 20].astype(np.float32))
    torch.manual_seed(settings.seed)
    dvae: Any = new_dvae(settings.hidden, settings.codes, settings.width)
    if context.base:
        stats = torch.load(context.base / MEL_FILE, weights_only=True).float()
        left_out = load_fitting(dvae, torch.load(context.base / DVAE_FILE, weights_only=True))
    else:
        stats, left_out = sample.std(dim=0).clamp(min=0.5), list(dvae.state_dict())
        dvae.decoder[-1].bias.data = sample.mean(dim=0) / stats  # else the first hundred updates learn nothing else
    dvae.to(context.device)
    lesson = _Lesson(settings, dvae, track, stats, is_new="codebook.embed" in left_out)
    loop = TrainingLoop(folder, {DVAE: dvae}, settings.steps, settings.rate, settings.seed, context.progress(DVAE))
    figures = loop.run(lesson.step, lesson.evaluate)
    _write(folder / DVAE_FILE, {name: _half(weight) for name, weight in dvae.state_dict().items()})
    _write(folder / MEL_FILE, stats)
    size = sum(weight.numel() for weight in dvae.parameters())
    return {**figures, "parameters": size, "hours": round(len(track) * 256 / RATE / 3600, 2)}


class _Lesson:
    """What one update of the DVAE is."""

    def __init__(
        self, settings: Dvae, dvae: nn.Module, track: npt.NDArray[np.float16], stats: Tensor, *, is_new: bool
    ) -> None:
        self.settings, self.stats, self.is_new = settings, stats, is_new
        self.dvae: Any = dvae
        self.held = min(JUDGED, len(track) // 4)
        self.track = track
        self.device = next(dvae.parameters()).device

    def step(self, number: int, random: np.random.Generator) -> Iterator[tuple[str, Tensor]]:
        """Yield the loss of some pieces of sound."""
        size = self.settings.frames
        starts = random.integers(0, max(1, len(self.track) - self.held - size), self.settings.crops)
        mel = self._mels(starts.tolist(), size)
        if number < REVIVED * self.settings.steps and number % OFTEN == 0:
            self._revive(mel, random, everyone=number == 0 and self.is_new)
        distance, commitment, _ = self.dvae(mel)
        yield DVAE, distance.mean() + COMMITMENT * commitment.mean()

    def evaluate(self) -> Figures:
        """Measure how well unheard sound comes back, and how many codes it takes."""
        mel = self._mels([len(self.track) - self.held], self.held - self.held % 4)
        distance, _, _ = self.dvae(mel)
        used = torch.bincount(self.dvae.get_codebook_indices(mel).flatten(), minlength=self.settings.codes).float()
        share = used[used > 0] / used.sum()
        return {
            "unheard": round(float(distance.mean()), 5),
            "codes_used": float((used > 0).sum()),
            "perplexity": round(float(torch.exp(-(share * share.log()).sum())), 1),
        }

    def _mels(self, starts: list[int], size: int) -> Tensor:
        return (crops(starts, size, self.track) / self.stats).mT.to(self.device)

    @torch.no_grad()
    def _revive(self, mel: Tensor, random: np.random.Generator, *, everyone: bool) -> None:
        """Move codes that nothing is near to into the midst of the sounds; at the beginning, all of them."""
        book = self.dvae.codebook
        found = self.dvae.encoder(mel).mT.flatten(0, 1)
        dead = torch.ones_like(book.cluster_size, dtype=torch.bool)
        if not everyone:
            dead = book.cluster_size < UNUSED * len(found) / self.settings.codes
        drawn = torch.from_numpy(random.integers(0, len(found), int(dead.sum())))
        sounds = found[drawn.to(found.device)].T
        book.embed[:, dead] = sounds
        book.embed_avg[:, dead] = sounds
        book.cluster_size[dead] = 1.0


def _track(context: BuildContext) -> npt.NDArray[np.float16]:
    """Return the mel frames of many clips one after another, mapped from the disk."""
    path = context.folder("dvae") / TRACK
    if not path.is_file():
        names = evenly_spaced(
            [take.name for take in read_takes(context.folder("corpus")) if take.split == "train"],
            context.recipe.dvae.clips,
        )
        names = [names[place] for place in np.random.default_rng(context.recipe.dvae.seed).permutation(len(names))]
        progress = context.progress("dvae")
        parts = list(
            progress.over((_mel_of(context.folder("audio") / WAVS / f"{name}{ENDING}") for name in names), len(names))
        )
        with atomic_writer(path) as file:
            np.save(file, np.concatenate(parts))
    mapped: npt.NDArray[np.float16] = np.load(path, mmap_mode="r")
    return mapped


def _mel_of(path: Path) -> npt.NDArray[np.float16]:
    from TTS.tts.layers.xtts.dvae import dvae_wav_to_mel

    mel = dvae_wav_to_mel(torch.from_numpy(audio.load(path, RATE))[None], mel_norms=torch.ones(80))
    frames: npt.NDArray[np.float16] = mel[0].T.half().numpy()
    return frames


def _half(weight: Tensor) -> Tensor:
    return weight.detach().cpu().half() if weight.is_floating_point() else weight.detach().cpu()


def _write(path: Path, content: object) -> None:
    with atomic_writer(path) as file:
        torch.save(content, file)
