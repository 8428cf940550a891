"""A model as it is loaded for speech, and how its weights are filled in.

Weights are read a few layers at a time, so that loading needs hardly more memory than the model itself.
"""

import dataclasses
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from utils.config import TrainConfig
from utils.core.errors import AmharicTtsError, VocabularyError
from utils.core.languages import find
from utils.core.paths import Project
from utils.xtts.checkpoints import Checkpoint
from utils.xtts.files import REFERENCE_FILE, VOCABULARY_FILE
from utils.xtts.model import GPT_PREFIX, load_vocoder, read_config, read_state_dict, strip_prefix
from utils.xtts.modules import fuse
from utils.xtts.tokenizer import Tokenizer

CONDITIONING = ("conditioning_encoder", "conditioning_perceiver")  # the parts of the GPT that encode a voice
TEXT_ROWS = "text_embedding.weight"  # one row per token
LAYER = re.compile(r"gpt\.h\.(\d+)\.")
LAYERS_AT_ONCE = 4  # 200 MB of the published model; each mapping of the file costs a tenth of a second

ReadWeights = Callable[[Sequence[str]], Mapping[str, Tensor]]


@dataclass(frozen=True)
class LoadedModel:
    """coqui's modules and what belongs to them."""

    folder: Path  # folder of config.json and speakers; for a checkpoint, that of its base
    gpt: nn.Module
    vocoder: nn.Module  # coqui's HifiDecoder with its speaker encoder
    mel_stats: Tensor  # divisors of the mel bands
    tokenizer: Tokenizer
    name: str
    fingerprint: str  # hash that identifies the model
    languages: tuple[str, ...]  # codes of the languages it speaks
    about: Mapping[str, Any] = field(default_factory=dict)  # metadata: run, step, losses and the like
    notices: tuple[str, ...] = ()  # messages for the user
    checkpoint: Checkpoint | None = None

    @cached_property
    def reference(self) -> Path | None:
        """Return the audio file of its default voice: that of its run, or the one beside the weights."""
        own = training_reference(self.checkpoint) if self.checkpoint else None
        beside = self.folder / REFERENCE_FILE
        return own or (beside if beside.is_file() else None)

    def conditioning_only(self) -> "LoadedModel":
        """Return it with only those parts of the GPT that encode voices, so that the others can be freed."""
        parts = nn.ModuleDict({name: self.gpt.get_submodule(name) for name in CONDITIONING})
        return dataclasses.replace(self, gpt=parts)


def training_reference(checkpoint: Checkpoint) -> Path | None:
    """Return the clip that a run spoke its samples with, or None when its dataset is gone."""
    from utils.dataset import clip_lists

    settings = checkpoint.info.settings if checkpoint.info else {}
    try:
        return clip_lists.read(TrainConfig.parse(settings), Project(checkpoint.run.parent.parent)).voice
    except (AmharicTtsError, OSError):  # the dataset was changed or moved since; the base has a voice too
        return None


def with_vocoder(base: Path, gpt: nn.Module, tokenizer: Tokenizer, **known: Any) -> LoadedModel:  # noqa: ANN401  # fields of LoadedModel
    """Add the vocoder of a base to a GPT."""
    for name in CONDITIONING:
        fuse(gpt.get_submodule(name))  # the same numbers, faster
    vocoder, mel_stats = load_vocoder(base)
    return LoadedModel(
        folder=base,
        gpt=gpt.eval().requires_grad_(requires_grad=False),
        vocoder=vocoder.requires_grad_(requires_grad=False),
        mel_stats=mel_stats,
        tokenizer=tokenizer,
        languages=_languages(base, tokenizer),
        notices=(*known.pop("notices", ()), *tokenizer.notices),
        **known,
    )


def _languages(base: Path, tokenizer: Tokenizer) -> tuple[str, ...]:
    """Return the languages of the config, and the added one, that the vocabulary has a token for."""
    added = [tokenizer.settings.language] if tokenizer.settings else []
    languages = dict.fromkeys(map(find, [*read_config(base).languages, *added]))
    return tuple(language.code for language in languages if language.token in tokenizer.vocabulary.ids)


def check_rows(weights: Mapping[str, Tensor], tokenizer: Tokenizer, folder: Path) -> None:
    """Refuse a vocabulary whose size differs from the text rows of the weights."""
    rows, tokens = weights.get(TEXT_ROWS), tokenizer.vocabulary.size
    if rows is not None and rows.shape[0] != tokens:
        raise VocabularyError(
            f"{folder}: the weights have {rows.shape[0]:,} text rows, but {VOCABULARY_FILE} has {tokens:,} tokens.",
            hint=f"Use the {VOCABULARY_FILE} that was saved with the weights.",
        )


def fill(gpt: nn.Module, read: ReadWeights, *, as_stored: bool) -> None:
    """Give a GPT on the meta device its weights.

    Args:
        gpt: As ``meta_gpt`` builds it.
        read: Returns the weights of these names.
        as_stored: Leave the GPT-2 layers as they are stored; otherwise all weights are copied in full precision.
    """
    for in_layers, names in _groups(gpt):
        weights = read(names)
        if not (in_layers and as_stored):
            weights = {name: weight.to(torch.float32, copy=True) for name, weight in weights.items()}
        gpt.load_state_dict(weights, strict=False, assign=True)


def read_from_file(path: Path) -> ReadWeights:
    """Read weights from a model.pth, mapped anew for each group: what was read of a mapping counts as memory."""
    if zipfile.is_zipfile(path):
        return lambda names: _select(strip_prefix(read_state_dict(path), GPT_PREFIX), names)
    whole = strip_prefix(read_state_dict(path), GPT_PREFIX)  # torch's older format cannot be mapped
    return lambda names: {name: whole.pop(name) for name in names}


def _select(weights: Mapping[str, Tensor], names: Sequence[str]) -> dict[str, Tensor]:
    return {name: weights[name] for name in names}


def _groups(gpt: nn.Module) -> Iterator[tuple[bool, list[str]]]:
    """Yield the weight names of a few layers at a time, and of what is around them."""

    def group(name: str) -> int:
        return int(match[1]) // LAYERS_AT_ONCE if (match := LAYER.match(name)) else -1

    for number, names in groupby(gpt.state_dict(), key=group):
        yield number >= 0, list(names)
