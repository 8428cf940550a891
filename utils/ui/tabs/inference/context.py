"""What the parts of the tab share: the page, the speech session, the form, and small HTML."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.blocks import Block
from gradio.components import Component

from utils.config import SpeechConfig
from utils.core.errors import AmharicTtsError, ConfigError, RunError
from utils.core.paths import Project
from utils.runs.background_jobs import BackgroundJobs
from utils.speech.models import ListedModel
from utils.speech.session import SpeechRequest, SpeechSession, Task
from utils.ui.form import build_form, read_form
from utils.ui.i18n import phrases, t
from utils.ui.page import RAW_INPUTS, PageContext
from utils.ui.views import error_box, file_url, progress_bar

OWN_PROGRESS: dict[str, Any] = {"show_progress": "hidden", **RAW_INPUTS}  # of events that show progress themselves

logger = logging.getLogger(__name__)

SAMPLES = (
    "ሰላም! እንኳን ደህና መጣችሁ።",
    "ዛሬ ሰኞ፣ መስከረም 5 ቀን 2017 ዓ.ም. ነው።",
    "እናቴ ጠዋት ከገበያ ትኩስ ዳቦ ገዝታ ቡና አፈላችልን።",
    "ልጁ በላ፤ ነገር ግን አልጠገበም። ምን ልስጠው?",
)


@dataclass(frozen=True)
class Context:
    """What the parts of the tab share."""

    page: PageContext
    session: SpeechSession  # the model in memory and the queue of requests for it
    jobs: BackgroundJobs  # continue when the visitor leaves
    form: dict[str, Component] = field(default_factory=dict)  # the widget of each setting of speech

    def build_fields(self, *names: str) -> None:
        """Lay out the widgets of some settings; without names, of all that are not laid out yet."""
        rest = [name for name in SpeechConfig.model_fields if name not in self.form]
        self.form.update(build_form(SpeechConfig, only=names or rest))

    @property
    def inputs(self) -> dict[str, Block]:
        """The inputs of a handler that speaks, by name."""
        return {"project": self.page.project, "page_language": self.page.language, **self.form}

    def submit(self, task: Task[Any], config: SpeechConfig, owner: str = "") -> SpeechRequest[Any]:
        """Queue a task; it cancels the one that is still running for the same owner."""
        if not config.model:
            raise RunError("No model is selected.", hint="Select one in the list, or train one first.")
        return self.session.submit(task, config, owner=owner)


@dataclass(frozen=True)
class Snapshot:
    """What the timer shows to one visitor."""

    name: str  # of the project, as entered
    project: Project
    models: list[ListedModel]
    language: str


def visitor(request: gr.Request | None) -> str:
    """Return the name of a browser tab; programs share one."""
    return str(request.session_hash) if request is not None and request.session_hash else "program"


def settings(values: dict[str, object]) -> SpeechConfig:
    return read_form({name: values[name] for name in values if name in SpeechConfig.model_fields}, SpeechConfig)


def uploaded_file(context: Context, file: object, missing: str) -> Path:
    """Return an uploaded file, as gradio names it to handlers without preprocessing."""
    name = file.get("path") if isinstance(file, dict) else file
    if not isinstance(name, str) or not name:
        raise ConfigError(missing)
    path = Path(name).resolve()
    if not path.is_relative_to(context.page.output.resolve()) or not path.is_file():
        raise ConfigError(f"{path.name} was not uploaded to this page.", hint="Upload the file again.")
    return path


# --- HTML ---


def shown_error(error: BaseException, language: str) -> str:
    """Show an error where it happened; internal errors also go to the log."""
    if not isinstance(error, AmharicTtsError):
        logger.error("A handler of the page failed.", exc_info=error)
    return error_box(error, language)


def progress_html(sentence: str, step: int = 0, total: int = 0) -> str:
    """Show progress, with a bar if the total is known; screen readers do not announce each update."""
    return f"<p>{escape(sentence)}</p>" + (progress_bar(f"{step} / {total}", step, total) if total else "")


def downloads(links: Iterable[tuple[Path, str]]) -> str:
    """Show links to files, given as (path, label)."""
    items = (f'<a href="{file_url(path)}" download="{escape(path.name)}">{escape(label)}</a>' for path, label in links)
    return f'<div class="downloads">{"".join(items)}</div>'


def flag_text(flag: str, language: str) -> str:
    """Describe what a guard found, with its figures in English."""
    kind, _, detail = flag.partition(":")
    key = f"inference.flag_{kind}"
    if key not in phrases():
        return flag
    figures = f" ({detail.strip()})" if language == "en" and any(map(str.isdigit, detail)) else ""
    return f"{t(key, language)}{figures}"
