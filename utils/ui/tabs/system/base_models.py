"""The base models: which are here, and the buttons that fetch, pause, give up and delete."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from utils import runs
from utils.config import DownloadConfig
from utils.core.errors import AmharicTtsError
from utils.ui import error_text
from utils.ui.confirm import Question, build_question, refuse_another
from utils.ui.form import build_form
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, PageContext, changed_updates, notify, show_errors
from utils.ui.tabs.system import downloads
from utils.ui.tabs.system.downloads import Base, Progress
from utils.ui.views import cell, disabled_reasons, note, progress_bar, table, time_left
from utils.xtts.files import BUILT_IN, TINY

HERE = "system.already_installed"
NOT_HERE = "system.nothing_to_delete"
OURS = "system.built_in"
FETCHING = "system.downloading"
NOT_FETCHING = "system.not_downloading"
NO_CONSENT = "system.licence_needed"


def build_downloads(page: PageContext) -> None:
    """Lay out the table, the choice and the buttons, and tie them."""
    shown = gr.HTML(elem_id="base-models")
    version = build_form(DownloadConfig, only=["version"])["version"]
    version.elem_id = "download-version"
    progress = gr.HTML(elem_id="download-progress")
    with gr.Row():
        begin = gr.Button(t("system.download"), variant="primary", interactive=False, min_width=130, elem_id="download")
        pause = gr.Button(t("system.pause"), interactive=False, min_width=130, elem_id="pause-download")
        cancel = gr.Button(
            t("system.cancel_download"), variant="stop", interactive=False, min_width=130, elem_id="cancel-download"
        )
        delete = gr.Button(
            t("system.delete_version"), variant="stop", interactive=False, min_width=130, elem_id="delete-version"
        )
    why_not = gr.HTML(elem_id="download-reasons")
    question = build_question("download-question", "system.confirm_delete_version", "system.cancel_delete_version")
    outputs = [gr.State({}), shown, progress, begin, pause, cancel, delete, why_not]
    _tie(page, version, outputs)
    _tie_delete(page, version, outputs, delete, question)


def look(output: Path, version: str | None, language: str, before: Mapping[str, Any] | None = None) -> list[Any]:
    """Show what is here and what can be done now; of what was shown ``before``, only what has changed."""
    found = [downloads.look(name) for name in downloads.VERSIONS]
    chosen = next((base for base in found if base.version == version), None)
    run = downloads.current(output)
    busy = run is not None and run.current_state().status in runs.ACTIVE
    consent = version in BUILT_IN or not downloads.needs_consent()
    why = reasons_of(
        chosen, busy=busy, unfinished=run is not None and any(base.is_begun for base in found), consent=consent
    )
    made = {
        "bases": _bases(found, language),
        "progress": _shown(run, language) if run else "",
        **{button: {"interactive": not reason} for button, reason in why.items()},
        "reasons": disabled_reasons(why, language),
    }
    return changed_updates(before or {}, made, made)


def reasons_of(base: Base | None, *, busy: bool, unfinished: bool, consent: bool) -> dict[str, str]:
    """Say for each button why it cannot be used now; empty when it can."""
    whole, there = base is not None and base.is_whole, base is not None and bool(base.files or base.is_begun)
    begin = FETCHING if busy else HERE if whole else "" if consent else NO_CONSENT
    return {
        "system.download": begin,
        "system.pause": "" if busy else NOT_FETCHING,
        "system.cancel_download": "" if busy or unfinished else NOT_FETCHING,
        "system.delete_version": OURS
        if base and base.version == TINY
        else FETCHING
        if busy
        else ""
        if there
        else NOT_HERE,
    }


def _bases(found: list[Base], language: str) -> str:
    rows = [
        (cell(base.version, classes="mark"), cell(t(_state(base), language)), cell(f"{base.size / 1e6:,.0f} MB"))
        for base in found
    ]
    return table([t(title, language) for title in ("system.base_version", "common.state", "system.size_disk")], rows)


def _state(base: Base) -> str:
    if base.is_whole:
        return "system.installed"
    return "system.incomplete" if base.files or base.is_begun else "system.not_installed"


def _shown(run: runs.Run, language: str) -> str:
    """Show how far the last download is, or how it ended."""
    state = run.current_state()
    try:
        version, found = downloads.version_of(run), downloads.progress(run)
    except AmharicTtsError as error:
        return note(error_text.describe(error, language))
    ended = f"{version} · {t(f'status.{state.status}', language)} {state.message}"
    if found is None or state.status is runs.Status.FINISHED:
        return note(ended)
    words = f"{ended} · {_told(found, language)}"
    return progress_bar(words, found.done, found.total) + note(words)


def _told(found: Progress, language: str) -> str:
    words = t(
        "system.download_progress",
        language,
        done=f"{found.done / 1e6:,.0f}",
        total=f"{found.total / 1e6:,.0f}",
        part=found.part,
    )
    left = time_left(found.seconds_left, language) if found.done < found.total else ""
    return f"{words} · {left}" if left else words


def _tie(page: PageContext, version: Any, outputs: list[Any]) -> None:  # noqa: ANN401  # a widget made from a field
    seen, _, _, begin, pause, cancel, *_ = outputs

    def live(chosen: str | None, language: str, before: Mapping[str, Any]) -> list[Any]:
        return look(page.output, chosen, language, before)

    @show_errors
    def start(chosen: str, language: str) -> list[Any]:
        downloads.begin(chosen or "", page.output)
        notify(t("system.download_started", language))
        return look(page.output, chosen, language)

    @show_errors
    def halt(chosen: str, language: str) -> list[Any]:
        downloads.pause(page.output)
        notify(t("system.download_paused", language))
        return look(page.output, chosen, language)

    @show_errors
    def give_up(chosen: str, language: str) -> list[Any]:
        downloads.give_up(page.output)
        notify(t("system.download_cancelled", language))
        return look(page.output, chosen, language)

    given = [version, page.language]
    gr.on(
        [*page.refresh, version.change],
        show_errors(live),
        [*given, seen],
        outputs,
        **RAW_INPUTS,
        **PRIVATE_EVENT,
    )
    for button, action, name in (
        (begin, start, "download_model"),
        (pause, halt, "pause_download"),
        (cancel, give_up, "give_up_download"),
    ):
        button.click(action, given, outputs, api_name=name, **RAW_INPUTS)


def _tie_delete(page: PageContext, version: Any, outputs: list[Any], delete: gr.Button, question: Question) -> None:  # noqa: ANN401
    def ask(chosen: str, language: str) -> str:
        return t("system.ask_delete_version", language, name=chosen)

    @show_errors
    def remove(chosen: str, language: str, about: object) -> list[Any]:
        refuse_another(about, chosen)
        size = downloads.delete(chosen or "", page.output)
        notify(t("system.freed", language, size=f"{size / 1e6:,.0f}"))
        return look(page.output, chosen, language)

    question.tie(delete, [version], page.language, ask, remove, outputs, api_name="delete_model", **RAW_INPUTS)
