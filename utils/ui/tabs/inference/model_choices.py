"""The models that can be opened, in words."""

from pathlib import Path

from utils.speech.models import ListedModel
from utils.ui.i18n import t

KINDS = {"ready": "inference.finished_model", "checkpoint": "inference.checkpoint", "base": "inference.base_model"}


def choices(found: list[ListedModel], language: str) -> list[tuple[str, str]]:
    """List models as (what a person sees, path)."""
    return [(title(one, language), str(one.path)) for one in found]


def title(one: ListedModel, language: str) -> str:
    """Describe a model in a line."""
    parts = [one.name, t(KINDS[one.kind], language)]
    if one.eval_loss is not None:
        parts.append(t("common.evaluation_loss", language, loss=f"{one.eval_loss:.4f}"))
    parts.append(f"{one.size / 1e9:.2f} GB" if one.size >= 1e8 else f"{one.size / 1e6:.0f} MB")
    return " · ".join([*parts, *(["★"] if one.is_best else [])])


def preferred(found: list[ListedModel], project: Path) -> str:
    """Return the model that somebody in a project most likely wants: its own first."""
    own = [one for one in found if one.path.is_relative_to(project)]
    best = [one for one in own if one.kind == "ready" or one.is_best]
    return str(next(iter([*best, *own, *found])).path) if found else ""
