"""The speaker encoder: coqui's ResNet at a small width, taught to tell the voices apart."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from tools.tiny_voice import continuing
from tools.tiny_voice.audio import ENDING, WAVS, select
from tools.tiny_voice.corpus import Take, read_takes
from tools.tiny_voice.speakers import SPEAKERS
from tools.tiny_voice.stages import BuildContext
from tools.tiny_voice.training_loop import TrainingLoop, crops, load_trained
from tools.untrained import EMBEDDING, new_speaker_encoder
from utils.core.storage import atomic_writer
from utils.media import audio

RATE = 16_000  # what coqui's encoder hears
HEARD = 60  # sentences of each voice, three minutes
SHARPNESS = 15.0  # of the choice between voices; their likeness lies between -1 and 1
CLASSIFIER = "classifier"
TRACK = "sound.npz"
NAMES = tuple(speaker.name for speaker in SPEAKERS)

Sounds = npt.NDArray[np.float32]


class SpeakerClassifier(nn.Module):
    """The encoder, and a direction for each voice to point to.

    Args:
        filters: Of the four stages of the encoder.
    """

    def __init__(self, filters: tuple[int, int, int, int]) -> None:
        super().__init__()
        self.encoder = new_speaker_encoder(filters)
        self.voices = nn.Parameter(torch.randn(len(NAMES), EMBEDDING))

    def forward(self, sound: Tensor) -> Tensor:
        """Return how like each voice some sounds are, of shape (sounds, samples)."""
        found = functional.normalize(self.encoder(sound), dim=1)
        return found @ functional.normalize(self.voices, dim=1).T


def train_speaker_encoder(context: BuildContext) -> dict[str, Any]:
    """Train the encoder and measure it on sentences that it never heard."""
    settings, folder = context.recipe.speaker_encoder, context.folder("speaker_encoder")
    torch.manual_seed(settings.seed)
    classifier = SpeakerClassifier(settings.filters)
    if context.base:
        continuing.load_speaker_encoder(context.base, classifier.encoder)
    classifier.to(context.device)
    tracks = _tracks(context)
    size = round(settings.seconds * RATE)

    def step(_: int, random: np.random.Generator) -> Iterator[tuple[str, Tensor]]:
        who = random.integers(0, len(NAMES), settings.crops)
        starts = [int(random.integers(0, max(1, len(tracks[name]) - size))) for name in (NAMES[one] for one in who)]
        heard = torch.cat([crops([start], size, tracks[NAMES[one]]) for one, start in zip(who, starts, strict=True)])
        likeness = classifier(heard.to(context.device))
        target = torch.from_numpy(who).to(context.device)
        yield CLASSIFIER, functional.cross_entropy(SHARPNESS * likeness, target)

    progress = context.progress("speaker_encoder")
    modules = {CLASSIFIER: classifier}
    figures = TrainingLoop(folder, modules, settings.steps, settings.rate, settings.seed, progress).run(step)
    return {**figures, "unheard_right": _evaluation(context, classifier)}


def load_speaker_encoder(context: BuildContext) -> nn.Module:
    """Return the trained encoder."""
    classifier = load_trained(
        SpeakerClassifier(context.recipe.speaker_encoder.filters), context.folder("speaker_encoder"), CLASSIFIER
    )
    return classifier.get_submodule("encoder")


@torch.no_grad()
def embedding(speaker_encoder: nn.Module, path: Path) -> Tensor:
    """Return what stands for the voice of a clip, of shape (1, 512)."""
    device = next(speaker_encoder.parameters()).device
    found: Tensor = speaker_encoder(torch.from_numpy(audio.load(path, RATE))[None].to(device), l2_norm=True)
    return found.cpu()


def take_path(context: BuildContext, take: Take) -> Path:
    """Return the file of a take."""
    return context.folder("audio") / WAVS / f"{take.name}{ENDING}"


def _tracks(context: BuildContext) -> dict[str, Sounds]:
    """Return the sentences of each voice one after another."""
    path = context.folder("speaker_encoder") / TRACK
    if not path.is_file():
        takes = select(read_takes(context.folder("corpus")), "sentence", "train")
        own = {name: [take for take in takes if take.speaker == name][:HEARD] for name in NAMES}
        sound = {
            name: np.concatenate([audio.load(take_path(context, one), RATE) for one in some])
            for name, some in own.items()
        }
        with atomic_writer(path) as file:
            np.savez(file, allow_pickle=False, **sound)
    with np.load(path) as kept:
        return {name: kept[name] for name in NAMES}


@torch.no_grad()
def _evaluation(context: BuildContext, classifier: SpeakerClassifier) -> float:
    """Return the share of unheard sentences whose voice is told right."""
    takes = select(read_takes(context.folder("corpus")), "sentence", "eval")
    right = 0
    for take in takes:
        heard = torch.from_numpy(audio.load(take_path(context, take), RATE))[None].to(context.device)
        right += NAMES[int(classifier(heard).argmax())] == take.speaker
    return round(right / len(takes), 4)
