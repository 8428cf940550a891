"""What the parts of the tab share: the page, the speech session, background jobs, the form, and small HTML."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import gradio as gr
from gradio.blocks import Block
from gradio.components import Component

from utils.config import SpeechConfig
from utils.core.errors import AmharicTtsError, ConfigError, RunError
from utils.core.paths import Project
from utils.runs.background_jobs import BackgroundJob, BackgroundJobs
from utils.speech.models import ListedModel
from utils.speech.session import SpeechRequest, SpeechSession, Task
from utils.ui.form import build_form, read_form
from utils.ui.i18n import phrases, t
from utils.ui.page import PageContext
from utils.ui.views import error_box, message_box, progress_bar

logger = logging.getLogger(__name__)

SAMPLES = (
    "ሰላም! እንኳን ደህና መጣችሁ።",
    "ዛሬ ሰኞ፣ መስከረም 5 ቀን 2017 ዓ.ም. ነው።",
    "እናቴ ጠዋት ከገበያ ትኩስ ዳቦ ገዝታ ቡና አፈላችልን።",
    "ልጁ በላ፤ ነገር ግን አልጠገበም። ምን ልስጠው?",
)
CSS = """
#inference-tab mark { background: #fecaca; color: #7f1d1d; padding: 0 3px; border-radius: 3px; }
#inference-tab .downloads { display: flex; flex-wrap: wrap; gap: 6px 14px; font-size: var(--text-sm); margin: 4px 0; }
#inference-tab .downloads a { color: #047857; text-decoration: underline; }
.dark #inference-tab .downloads a { color: #6ee7b7; }
#inference-tab .html-container audio { width: 100%; min-width: 180px; max-width: 420px; height: 40px; display: block; }
#takes .wrap, #sentences .wrap { max-height: 18rem; }
#inference-tab td.reads { font-family: var(--font-mono); font-size: 0.85em; overflow-wrap: anywhere; }
#inference-tab .settings > .form { display: grid !important; gap: 10px; background: none; border: 0; box-shadow: none;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 230px), 1fr)) !important; }
#inference-tab .settings > .form > * { border: 1px solid var(--border-color-primary) !important;
  border-radius: var(--block-radius); }
#stream-chunk { display: none !important; }
"""


@dataclass(frozen=True)
class Context:
    """What the parts of the tab share.

    Attributes:
        page: The frame around it.
        session: The model in memory and the queue of requests for it.
        jobs: Work that continues when the visitor leaves.
        form: The widget of each setting of speech, by its name.
    """

    page: PageContext
    session: SpeechSession
    jobs: BackgroundJobs
    form: dict[str, Component] = field(default_factory=dict)

    def project(self, name: str) -> Project:
        """Return the open project."""
        return self.page.open(name)

    def build_fields(self, *names: str) -> None:
        """Lay out the widgets of some settings; without names, of all that are not laid out yet."""
        rest = [name for name in SpeechConfig.model_fields if name not in self.form]
        self.form.update(build_form(SpeechConfig, only=names or rest))

    @property
    def inputs(self) -> dict[str, Block]:
        """Return the inputs of a handler that speaks, by name."""
        return {"project": self.page.project, "page_language": self.page.language, **self.form}

    def submit(self, task: Task[Any], config: SpeechConfig, owner: str = "") -> SpeechRequest[Any]:
        """Queue a task; it cancels the one that is still running for the same owner."""
        if not config.model:
            raise RunError("No model is selected.", hint="Select one in the list, or train one first.")
        return self.session.submit(task, config, owner=owner)


@dataclass(frozen=True)
class Snapshot:
    """What the timer shows to one visitor: the open project, its folder, the models, and the interface language."""

    name: str
    project: Project
    models: list[ListedModel]
    language: str


def visitor(request: gr.Request | None) -> str:
    """Return the name of a browser tab; programs share one."""
    return str(request.session_hash) if request is not None and request.session_hash else "program"


def settings(values: dict[str, object]) -> SpeechConfig:
    """Read the form."""
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


# --- background jobs ---


def stop_button(context: Context, kind: str) -> gr.Button:
    """Make a button that stops a background job of the project."""
    button = gr.Button(t("inference.stop"), variant="stop", interactive=False, min_width=100, elem_id=f"stop-{kind}")

    def stop(project: str) -> None:
        context.jobs.stop(project, kind)

    button.click(stop, context.page.project, None, api_name=f"stop_{kind}", queue=False, show_progress="hidden")
    return button


def start_job(
    context: Context, project: str, kind: str, language: str, prepare: Callable[[], Callable[[BackgroundJob], object]]
) -> str:
    """Start a background job and say so, or show why not.

    Args:
        context: What the tab shares.
        project: Name of the project.
        kind: The kind of job; one of each runs at a time.
        language: The interface language.
        prepare: Checks what the visitor entered and returns the task.
    """
    try:
        context.jobs.start(project, kind, prepare())
    except Exception as error:  # noqa: BLE001  # shown
        return shown_error(error, language)
    return message_box("success", t("inference.job_started", language))


def job_status(
    job: BackgroundJob | None, language: str, describe: Callable[[Any], str]
) -> tuple[str, dict[str, object]]:
    """Show how far a job is or how it ended; return that and the state of its Stop button.

    Args:
        job: The job; None before the first one.
        language: The interface language.
        describe: Turns the result into a sentence.
    """
    if job is None:
        return "", {"interactive": False}
    is_running = job.is_running
    if job.error:
        html = error_box(job.error, language)
    elif job.result is not None:
        html = message_box("success", describe(job.result))
    elif not is_running:
        html = message_box("warning", t("inference.stopped", language))
    else:
        message = job.progress.message or t("inference.getting_ready", language)
        html = progress_html(f"{message} · {job.seconds:.0f} s", job.progress.step, job.progress.total)
    return html, {"interactive": is_running}


# --- HTML ---


def shown_error(error: BaseException, language: str) -> str:
    """Show an error where it happened; internal errors also go to the log."""
    if not isinstance(error, AmharicTtsError):
        logger.error("A handler of the page failed.", exc_info=error)
    return error_box(error, language)


def progress_html(sentence: str, step: int = 0, total: int = 0) -> str:
    """Show progress, with a bar if the total is known; screen readers do not announce each update."""
    return f"<p>{escape(sentence)}</p>" + (progress_bar(f"{step} / {total}", step, total) if total else "")


def file_url(path: Path) -> str:
    """Return the URL of a file of a project; a changed file gets another URL."""
    try:
        version = f"?v={path.stat().st_mtime_ns}"
    except FileNotFoundError:  # deleted at this moment
        version = ""
    return f"gradio_api/file={quote(path.as_posix())}{version}"


def downloads(links: Iterable[tuple[Path, str]]) -> str:
    """Show links to files, given as (path, label)."""
    items = (
        f'<a href="{escape(file_url(path))}" download="{escape(path.name)}">{escape(label)}</a>'
        for path, label in links
    )
    return f'<div class="downloads">{"".join(items)}</div>'


def player(path: Path, label: str) -> str:
    """Show a small audio player."""
    return f'<audio controls preload="none" src="{escape(file_url(path))}" aria-label="{escape(label)}"></audio>'


def flag_text(flag: str, language: str) -> str:
    """Put into plain words what a guard found, with its figures."""
    kind, _, detail = flag.partition(":")
    key = f"inference.flag_{kind}"
    if key not in phrases():
        return flag
    figures = f" ({detail.strip()})" if language == "en" and any(map(str.isdigit, detail)) else ""
    return f"{t(key, language)}{figures}"
