"""Opening a model to speak with: a finished one, a run's checkpoint, a base version, or a folder of plain coqui-tts.

Whatever it is, the answer is coqui's GPT and vocoder in full precision, the tokenizer that the model was trained with,
and what is known of it. Vocabulary and weights are compared before anything is spoken.
"""

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from utils.core.errors import AmharicTtsError
from utils.core.folders import symlink_or_copy
from utils.core.languages import find
from utils.core.paths import OUTPUT, Project
from utils.core.storage import make_folder
from utils.speech.checkpoint_model import Parts, check_rows, is_trained, open_trained
from utils.speech.gpt_loading import fill, from_file
from utils.speech.model_lookup import find_model, lacking
from utils.xtts.base_models import ModelSource
from utils.xtts.checkpoints import Checkpoint
from utils.xtts.conditioning import fuse
from utils.xtts.files import (
    ABOUT_FILE,
    MODEL_FILE,
    MODEL_FILE_NAMES,
    REFERENCE_FILE,
    REQUIRED_FILES,
    SETTINGS_FILE,
    SPEAKERS_FILE,
    ModelFileError,
    read_about,
)
from utils.xtts.model import GPT_PREFIX, fingerprint, load_gpt, load_vocoder, meta_gpt, read_config, require_vocoder
from utils.xtts.state_dict import compare, read_state_dict, require_match, strip_prefix
from utils.xtts.tokenizer import Tokenizer

HEARING = ("conditioning_encoder", "conditioning_perceiver")  # the parts of the GPT that listen to a voice
BESIDE = (*REQUIRED_FILES, SETTINGS_FILE, SPEAKERS_FILE, REFERENCE_FILE, ABOUT_FILE)  # what is read besides the weights


@dataclass(frozen=True)
class LoadedModel:
    """A model that is ready to be prepared for speech.

    Attributes:
        folder: Where config.json and speakers lie; for a checkpoint, that of its base.
        gpt: coqui's GPT in eval mode; in full precision and with weights of its own unless they were left as stored.
        vocoder: coqui's HifiDecoder, speaker encoder included.
        mel_stats: What each band of a mel is divided by.
        tokenizer: How the model reads.
        name: What to call it.
        fingerprint: Tells models apart.
        languages: Codes of what it speaks.
        about: What is known of it: run, step, losses and the like.
        notices: What a user should know, in sentences.
        checkpoint: The checkpoint that it is, if it is one.
    """

    folder: Path
    gpt: nn.Module
    vocoder: nn.Module
    mel_stats: Tensor
    tokenizer: Tokenizer
    name: str
    fingerprint: str
    languages: tuple[str, ...]
    about: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    checkpoint: Checkpoint | None = None

    @cached_property
    def reference(self) -> Path | None:
        """Return the clip that it speaks with unless told otherwise: that of its run, or the one beside the weights."""
        own = training_reference(self.checkpoint) if self.checkpoint else None
        beside = self.folder / REFERENCE_FILE
        return own or (beside if beside.is_file() else None)

    def conditioning_only(self) -> "LoadedModel":
        """Return it with only those parts of the GPT that listen to voices, so that the others can be freed."""
        parts = nn.ModuleDict({name: self.gpt.get_submodule(name) for name in HEARING})
        return dataclasses.replace(self, gpt=parts)


def open_model(
    place: str | Path = "",
    *,
    base: str | Path | None = None,
    merge: bool = False,
    as_stored: bool = False,
    output: Path = OUTPUT,
    source: ModelSource | None = None,
) -> LoadedModel:
    """Open a model, or say in one sentence what is wrong with it.

    Args:
        place: A finished model, a project, a run, a checkpoint, an adapter, a base version, a folder of coqui or one
            of its .pth files; empty: the model that was finished last.
        base: The folder or version that a checkpoint was trained from, where it does not say so or was moved.
        merge: Merge the adapter that lies beside a checkpoint's weights into the base, in full precision, rather than
            read the weights, which were rounded after merging.
        as_stored: Leave the layers of the GPT-2 in their file, or in half precision, for ``Decoder.of`` with consume,
            which takes them over one by one; so the whole model never lies in memory.
        output: Where the projects lie.
        source: Where published models come from.
    """
    source = source or ModelSource()
    found = find_model(place, output, source)
    if is_trained(found):
        parts = open_trained(found, base, source, merge=merge, as_stored=as_stored)
    else:
        parts = _open_whole(found, source, as_stored=as_stored)
    for name in HEARING:
        fuse(parts.gpt.get_submodule(name))  # the same numbers, sooner
    vocoder, stats = load_vocoder(parts.base)
    return LoadedModel(
        folder=parts.base,
        gpt=parts.gpt.eval().requires_grad_(requires_grad=False),
        vocoder=vocoder.requires_grad_(requires_grad=False),
        mel_stats=stats,
        tokenizer=parts.tokenizer,
        name=parts.name,
        fingerprint=parts.fingerprint,
        languages=_spoken(parts),
        about=parts.about,
        notices=parts.notices + parts.tokenizer.notices,
        checkpoint=parts.checkpoint,
    )


def _open_whole(place: Path, source: ModelSource, *, as_stored: bool) -> Parts:
    """Open a folder that has all parts of a model."""
    folder = _in_usual_layout(place, source)
    tokenizer = Tokenizer.load(folder)
    gpt = meta_gpt(read_config(folder).model_args, tokenizer.vocabulary)
    missing = _missing(folder, gpt, tokenizer)
    if missing:
        gpt = load_gpt(folder)
    else:
        fill(gpt, from_file(folder / MODEL_FILE), as_stored=as_stored)
    named = place.parent if place.is_file() or place.name == "ready" else place
    return Parts(
        base=folder,
        gpt=gpt,
        tokenizer=tokenizer,
        name=place.stem if place.is_file() else named.name,
        fingerprint=fingerprint(folder),
        about=read_about(folder),
        notices=tuple(f"{folder} lacks the weights {name}: chance numbers stand in for them." for name in missing),
    )


def _missing(folder: Path, gpt: nn.Module, tokenizer: Tokenizer) -> tuple[str, ...]:
    """Compare a model with its vocabulary and its config, and name the weights that a foreign file lacks."""
    weights = read_state_dict(folder / MODEL_FILE)
    require_vocoder(weights, folder)
    own = strip_prefix(weights, GPT_PREFIX)
    check_rows(own, tokenizer, folder)
    return require_match(compare(gpt, own), str(folder / MODEL_FILE)).missing


def _in_usual_layout(place: Path, source: ModelSource) -> Path:
    """Return a folder with a model.pth; where coqui's Trainer named the weights, one that points to them."""
    folder = place if place.is_dir() else place.parent
    if absent := lacking(folder, place if place.is_file() else None):
        raise ModelFileError(
            f"{folder} holds no {' and no '.join(absent)}.",
            hint="Put the file there that was saved together with the model, or name another model.",
        )
    weights = place if place.is_file() else next(path for name in MODEL_FILE_NAMES if (path := folder / name).is_file())
    if weights.name == MODEL_FILE:
        return folder
    key = hashlib.blake2b(str(weights.resolve()).encode(), digest_size=6).hexdigest()
    usual = source.models / f".opened-{key}"
    make_folder(usual)
    symlink_or_copy(weights, usual / MODEL_FILE)
    for name in BESIDE:
        if (folder / name).is_file():
            symlink_or_copy(folder / name, usual / name)
        else:
            (usual / name).unlink(missing_ok=True)
    return usual


def _spoken(parts: Parts) -> tuple[str, ...]:
    """List the languages of the config, and the added one, that the vocabulary has a token for."""
    settings = parts.tokenizer.settings
    named = [*read_config(parts.base).languages, *([settings.language] if settings else [])]
    known = dict.fromkeys(map(find, named))
    return tuple(language.code for language in known if language.token in parts.tokenizer.vocabulary.ids)


def training_reference(checkpoint: Checkpoint) -> Path | None:
    """Return the clip that the run spoke its samples with; None when its dataset is no longer there."""
    from utils.config import TrainConfig
    from utils.dataset import clip_lists

    settings = checkpoint.info.settings if checkpoint.info else {}
    try:
        return clip_lists.read(TrainConfig.parse(settings), Project(checkpoint.run.parent.parent)).voice
    except (AmharicTtsError, OSError):  # the dataset was changed or moved since; the base has a voice too
        return None
