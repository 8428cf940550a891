"""What the parts of the tab share: the page, the speech session, the settings of speech, and small HTML."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from utils.config import SpeechConfig
from utils.speech.session import SpeechRequest, SpeechSession, Task
from utils.studio.facts import UsageError
from utils.ui.page import PageContext, PanelRequest, log_internal
from utils.ui.settings_form import SettingsForm, values_of
from utils.ui.views import error_box

FIRST = ("language", "speed")
OTHERS = tuple(name for name in SpeechConfig.model_fields if name not in {"model", "reference", *FIRST})
GROUPS = {"inference.voice_settings": (*FIRST, *OTHERS)}
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
    model: gr.Dropdown
    reference: gr.Dropdown
    form: SettingsForm  # all other settings of speech

    @property
    def session(self) -> SpeechSession:
        return self.page.session

    @property
    def inputs(self) -> dict[str, Any]:
        """Return what is read to speak, by the names that ``config`` takes."""
        return {"model": self.model, "reference": self.reference, "settings": self.form.widget}

    def submit(self, task: Task[Any], config: SpeechConfig, owner: str = "") -> SpeechRequest[Any]:
        """Queue a task; it cancels the one that is still running for the same owner."""
        if not config.model:
            raise UsageError("no_model")
        return self.session.submit(task, config, owner=owner)


def config(fields: Mapping[str, Any]) -> SpeechConfig:
    """Return the settings of speech from the values of ``Context.inputs``."""
    values = {**values_of(fields.get("settings")), **{name: fields.get(name) or "" for name in ("model", "reference")}}
    return SpeechConfig.parse(values, source="The form")


def visitor(request: gr.Request | None) -> str:
    """Return the name of a browser tab; programs share one."""
    return str(request.session_hash) if request is not None and request.session_hash else "program"


def uploaded_file(request: PanelRequest, name: str) -> Path:
    """Return an uploaded file, as gradio names it to handlers without preprocessing."""
    file = request.fields.get(name)
    named = file.get("path") if isinstance(file, dict) else file
    if not isinstance(named, str) or not named:
        raise UsageError("no_file")
    path = Path(named).resolve()
    if not path.is_relative_to(request.page.output.resolve()) or not path.is_file():
        raise UsageError("not_uploaded", path.name)
    return path


def shown_error(error: BaseException) -> str:
    """Show an error where it happened; internal errors also go to the log."""
    return error_box(log_internal(error))
