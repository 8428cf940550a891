"""Step 2.5: which checkpoints a run has, and making one of them the finished model."""

from pathlib import Path

from utils.runs import Run, find_run
from utils.ui.i18n import t
from utils.ui.page import PageContext
from utils.ui.tabs.training.forecast import gigabytes
from utils.ui.tabs.training.queries import ask
from utils.ui.views import message_box, note
from utils.xtts import checkpoints
from utils.xtts.checkpoints import Checkpoint


def offered(run: Run | None, chosen: object, language: str) -> dict[str, object]:
    """Return what the widgets shall show: the checkpoints of a run, the button, and why it is disabled."""
    found = [one for one in checkpoints.list_checkpoints(run.folder) if one.info] if run else []
    names = [str(one.step) for one in found]
    best = next((str(one.step) for one in found if one.is_best), names[0] if names else None)
    choices: dict[str, object] = {"choices": [(title(one, language), str(one.step)) for one in found]}
    if chosen not in names:
        choices["value"] = best
    reason = "" if names else t("training.no_checkpoint", language)
    return {"checkpoint": choices, "optimise": {"interactive": bool(names)}, "optimise_reason": note(reason)}


def title(one: Checkpoint, language: str) -> str:
    """Describe a checkpoint in a line."""
    about = one.info
    parts = [f"{t('common.step', language)} {one.step}"]
    if about and about.eval_loss is not None:
        parts.append(t("common.evaluation_loss", language, loss=f"{about.eval_loss:.4f}"))
    parts.append(gigabytes(one.size))
    if one.is_best:
        parts.append(f"★ {t('training.best', language)}")
    return " · ".join(parts)


def optimise(page: PageContext, project: str, run: object, step: object, *, half: bool, language: str) -> str:
    """Write ready/ in a child process and say what came of it."""
    place = page.open(project)
    found = find_run(place, run)
    number = int(str(step)) if str(step).isdecimal() else 0
    answer = ask("optimise", run=str(found.folder), step=number, ready=str(place.ready), half=half)
    voice = Path(answer["voice"]).name if answer["voice"] else t("training.base_model", language)
    sentence = t(
        "training.exported",
        language,
        step=number,
        run=found.name,
        folder=answer["folder"],
        size=gigabytes(int(answer["size"])),
        voice=voice,
    )
    return message_box("success", sentence)
