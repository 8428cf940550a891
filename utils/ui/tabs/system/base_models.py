"""The base models on disk, and the buttons that download, pause, cancel and delete."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from utils import runs
from utils.config import DownloadConfig
from utils.core.errors import AmharicTtsError
from utils.ui.form import build_form
from utils.ui.i18n import describe_error, t
from utils.ui.page import (
    PRIVATE_EVENT,
    RAW_INPUTS,
    Confirmation,
    PageContext,
    build_confirmation,
    changed_updates,
    notify,
    refuse_other,
    show_errors,
)
from utils.ui.tabs.system import downloads
from utils.ui.tabs.system.downloads import BaseModel, DownloadProgress
from utils.ui.views import cell, disabled_reasons, note, progress, table, time_left
from utils.xtts.files import BUILT_IN, TINY


def build_downloads(page: PageContext) -> None:
    """Lay out the table, the version and the buttons, and connect them."""
    models = gr.HTML(elem_id="base-models")
    version = build_form(DownloadConfig, only=["version"])["version"]
    version.elem_id = "download-version"
    state = gr.HTML(elem_id="download-progress")
    with gr.Row():
        start = _button("download", "system.download", "primary")
        pause = _button("pause-download", "system.pause", "secondary")
        cancel = _button("cancel-download", "system.cancel_download", "stop")
        delete = _button("delete-version", "system.delete_version", "stop")
    reasons = gr.HTML(elem_id="download-reasons")
    confirmation = build_confirmation(
        "download-question", "system.confirm_delete_version", "system.cancel_delete_version"
    )
    outputs = [gr.State({}), models, state, start, pause, cancel, delete, reasons]
    _connect(page, version, outputs)
    _connect_delete(page, version, outputs, delete, confirmation)


def _button(elem_id: str, key: str, variant: Any) -> gr.Button:  # noqa: ANN401  # gradio's literal
    return gr.Button(t(key), variant=variant, interactive=False, min_width=130, elem_id=elem_id)


def download_updates(
    output: Path, version: str | None, language: str, before: Mapping[str, Any] | None = None
) -> list[Any]:
    """Return updates of the table and the buttons; only what differs from ``before``."""
    models = [downloads.base_model(name) for name in downloads.VERSIONS]
    chosen = next((model for model in models if model.version == version), None)
    run = downloads.current(output)
    why = reasons_disabled(
        chosen,
        busy=run is not None and run.current_state().status in runs.ACTIVE,
        unfinished=run is not None and any(model.is_begun for model in models),
        consent=version in BUILT_IN or not downloads.needs_consent(),
    )
    after = {
        "models": models_table(models, language),
        "progress": _progress(run, language) if run else "",
        **{button: {"interactive": not reason} for button, reason in why.items()},
        "reasons": disabled_reasons(why, language),
    }
    return changed_updates(before or {}, after, after)


def reasons_disabled(model: BaseModel | None, *, busy: bool, unfinished: bool, consent: bool) -> dict[str, str]:
    """Return for each button why it is disabled; empty when it is enabled."""
    downloading = "system.downloading" if busy else ""
    installed = "system.already_installed" if model is not None and model.is_whole else ""
    unaccepted = "" if consent else "system.licence_needed"
    on_disk = model is not None and bool(model.files or model.is_begun)
    built_in = "system.built_in" if model and model.version == TINY else ""
    return {
        "system.download": downloading or installed or unaccepted,
        "system.pause": "" if busy else "system.not_downloading",
        "system.cancel_download": "" if busy or unfinished else "system.not_downloading",
        "system.delete_version": built_in or downloading or ("" if on_disk else "system.nothing_to_delete"),
    }


def models_table(models: list[BaseModel], language: str) -> str:
    """Return the base models with their state and size."""
    rows = [
        (cell(model.version, classes="mark"), cell(t(_state(model), language)), cell(f"{model.size / 1e6:,.0f} MB"))
        for model in models
    ]
    return table([t(title, language) for title in ("system.base_version", "common.state", "system.size_disk")], rows)


def _state(model: BaseModel) -> str:
    if model.is_whole:
        return "system.installed"
    return "system.incomplete" if model.files or model.is_begun else "system.not_installed"


def _progress(run: runs.Run, language: str) -> str:
    """Return the progress of the last download, or how it ended."""
    state = run.current_state()
    try:
        version, current = downloads.version_of(run), downloads.progress(run)
    except AmharicTtsError as error:
        return note(describe_error(error, language))
    status = f"{version} · {t(f'status.{state.status}', language)} {state.message}"
    if current is None or state.status is runs.Status.FINISHED:
        return note(status)
    return progress(f"{status} · {_progress_label(current, language)}", current.done, current.total)


def _progress_label(current: DownloadProgress, language: str) -> str:
    done, total = f"{current.done / 1e6:,.0f}", f"{current.total / 1e6:,.0f}"
    label = t("system.download_progress", language, done=done, total=total, part=current.part)
    left = time_left(current.seconds_left, language) if current.done < current.total else ""
    return f"{label} · {left}" if left else label


def _connect(page: PageContext, version: Any, outputs: list[Any]) -> None:  # noqa: ANN401  # a widget made from a field
    shown, _, _, start, pause, cancel, *_ = outputs

    def refresh(chosen: str | None, language: str, before: Mapping[str, Any]) -> list[Any]:
        return download_updates(page.output, chosen, language, before)

    @show_errors
    def start_download(chosen: str, language: str) -> list[Any]:
        downloads.start(chosen, page.output)
        notify(t("system.download_started", language))
        return download_updates(page.output, chosen, language)

    @show_errors
    def pause_download(chosen: str, language: str) -> list[Any]:
        downloads.pause(page.output)
        notify(t("system.download_paused", language))
        return download_updates(page.output, chosen, language)

    @show_errors
    def cancel_download(chosen: str, language: str) -> list[Any]:
        downloads.cancel(page.output)
        notify(t("system.download_cancelled", language))
        return download_updates(page.output, chosen, language)

    inputs = [version, page.language]
    gr.on(
        [*page.refresh, version.change], show_errors(refresh), [*inputs, shown], outputs, **RAW_INPUTS, **PRIVATE_EVENT
    )
    start.click(start_download, inputs, outputs, api_name="download_model", **RAW_INPUTS)
    pause.click(pause_download, inputs, outputs, api_name="pause_download", **RAW_INPUTS)
    cancel.click(cancel_download, inputs, outputs, api_name="give_up_download", **RAW_INPUTS)


def _connect_delete(
    page: PageContext,
    version: Any,  # noqa: ANN401  # a widget made from a field
    outputs: list[Any],
    button: gr.Button,
    confirmation: Confirmation,
) -> None:
    def ask(chosen: str, language: str) -> str:
        return t("system.ask_delete_version", language, name=chosen)

    @show_errors
    def delete(chosen: str, language: str, asked: object) -> list[Any]:
        refuse_other(asked, chosen)
        size = downloads.delete(chosen or "", page.output)
        notify(t("system.freed", language, size=f"{size / 1e6:,.0f}"))
        return download_updates(page.output, chosen, language)

    confirmation.connect(button, [version], page.language, ask, delete, outputs, api_name="delete_model", **RAW_INPUTS)
