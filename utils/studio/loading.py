"""Load the models of this installation, with what their projects have for them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from utils.config import SpeechConfig, TrainConfig
from utils.core.errors import AmharicTtsError
from utils.dataset import metadata
from utils.studio import paths
from utils.studio.models import find_model, pronunciations_of
from utils.studio.paths import OUTPUT, Project
from utils.xtts import checkpoints
from utils.xtts.checkpoints import SavedCheckpoint

if TYPE_CHECKING:
    from utils.speech.loading import Companions, LoadedModel
    from utils.speech.synthesizer import Caches, Synthesizer


def chosen_voice(
    config: SpeechConfig, output: Path = OUTPUT, on_step: Callable[[], object] = lambda: None
) -> "Synthesizer":
    """Load the model that the settings name, ready to speak; ``on_step`` is as in the library."""
    from utils.speech import synthesizer

    path = find_model(config.model, output)
    return synthesizer.open_voice(
        path,
        config.device,
        config.precision,
        companions=companions(path),
        caches=caches(output),
        on_step=on_step,
    )


def chosen_checkpoint(checkpoint: Path, device: str, precision: str, output: Path = OUTPUT) -> "Synthesizer":
    """Load a checkpoint of a run that speaks while it trains."""
    return chosen_voice(SpeechConfig(model=str(checkpoint), device=device, precision=precision), output)


def chosen_model(
    model: str | Path, base: str | Path = "", output: Path = OUTPUT, *, merge: bool = False
) -> "LoadedModel":
    """Load a model; it and the base that it was trained from are named as in ``find_model``."""
    from utils.speech import loading

    path = find_model(model, output)
    return loading.open_model(path, companions(path, find_model(base, output) if base else None), merge=merge)


def companions(model: Path, base: Path | None = None) -> "Companions":
    """Return what belongs to a model and lies elsewhere."""
    from utils.speech.loading import Companions

    listed = checkpoints.list_checkpoints(model.parent.parent) if model.name.startswith(checkpoints.PREFIX) else []
    own = next((each for each in listed if each.folder == model), None)
    if own is None:
        return Companions(base, paths.MODELS, pronunciations=pronunciations_of(model))
    exported = Project(own.run.parent.parent).ready
    return Companions(base, paths.MODELS, exported, training_reference(own), pronunciations_of(model))


def caches(output: Path) -> "Caches":
    """Return where computed voices and measurements of this machine are stored."""
    from utils.speech.synthesizer import Caches

    return Caches(output / paths.VOICES.relative_to(OUTPUT), paths.PRECISIONS, paths.GPU_CERTIFICATE)


def training_reference(checkpoint: SavedCheckpoint) -> Path | None:
    """Return the clip that a run spoke its samples with, or None when its dataset is gone."""
    settings = checkpoint.info.settings if checkpoint.info else {}
    try:
        return metadata.clips_of_run(
            checkpoint.run, TrainConfig.parse(settings), Project(checkpoint.run.parent.parent).dataset
        ).voice
    except (AmharicTtsError, OSError):  # the dataset was changed or moved since; the base has a voice too
        return None


def make_ready(
    checkpoint: SavedCheckpoint, reference: Path | None = None, *, half: bool = False, without_ema: bool = False
) -> Path:
    """Make a checkpoint the voice of its project; its reference is by default the clip of the samples."""
    from utils.xtts.export import promote

    project = Project(checkpoint.run.parent.parent)
    voice = reference or training_reference(checkpoint)
    return promote(
        checkpoint,
        project.ready,
        paths.MODELS,
        voice,
        pronunciations=project.pronunciations,
        half=half,
        without_ema=without_ema,
    )
