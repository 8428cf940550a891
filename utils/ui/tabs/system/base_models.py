"""The base models on disk, their downloads, and the licence of the published ones."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr

from utils import runs
from utils.config import DownloadConfig
from utils.core import paths
from utils.core.errors import AmharicTtsError, StorageError
from utils.core.storage import make_folder, read_json, read_text, storage_error
from utils.ui.form import build_form
from utils.ui.i18n import describe_error, labels, t
from utils.ui.page import (
    RAW_INPUTS,
    PageContext,
    build_confirmation,
    changed_updates,
    connect_live,
    notify,
    refuse_other,
    show_errors,
)
from utils.ui.tabs.system import downloads
from utils.ui.tabs.system.downloads import BaseModel
from utils.ui.views import cell, note, progress, table, time_left
from utils.xtts.files import TINY
from utils.xtts.hub import LICENCE, VARIABLE, LicenceError, accept_licence, download, file_info, licence_accepted

LICENCE_FILE = "LICENSE.txt"  # beside the model on the hub


# --- the licence ---


def build_licence(page: PageContext) -> None:
    gr.Markdown(t("system.licence_summary"))
    state = gr.HTML(elem_id="licence-state")
    texts = labels("common.your_name", "system.your_name_hint")
    name = gr.Textbox(max_lines=1, interactive=True, elem_id="licence-name", **texts)
    with gr.Row():
        agree = gr.Button(t("system.accept_licence"), visible=False, min_width=150, elem_id="agree")
        withdraw = gr.Button(t("system.withdraw_consent"), visible=False, min_width=150, elem_id="withdraw")
        show = gr.Button(t("system.show_licence"), min_width=150, elem_id="show-licence")
    text = gr.Textbox(
        label=t("system.licence_text"), lines=12, max_lines=12, interactive=False, visible=False, elem_id="licence-text"
    )

    @show_errors
    def consent(person: str, language: str) -> list[Any]:
        accept_licence(person, paths.LICENCE_CONSENT)
        notify(t("common.consent_saved", language))
        return changed_updates({}, licence_state(language), live)

    @show_errors
    def withdraw_and_show(language: str) -> list[Any]:
        withdraw_consent()
        notify(t("system.consent_withdrawn", language))
        return changed_updates({}, licence_state(language), live)

    @show_errors
    def read() -> dict[str, Any]:
        return gr.update(value=licence_text(), visible=True)

    live = {"state": state, "agree": agree, "withdraw": withdraw}
    outputs = connect_live(page, licence_state, [page.language], live)
    agree.click(consent, [name, page.language], outputs, api_name="agree_to_licence")
    withdraw.click(withdraw_and_show, page.language, outputs, api_name="withdraw_consent")
    show.click(read, None, text, api_name="licence_text")


def licence_state(language: str) -> dict[str, Any]:
    """Return updates of the state and the buttons."""
    agreed, by_variable = licence_accepted(paths.LICENCE_CONSENT), os.environ.get(VARIABLE) == "1"
    if by_variable:
        sentence = t("system.accepted_by_variable", language, name=VARIABLE)
    elif agreed:
        stored = read_json(paths.LICENCE_CONSENT)
        who, when = stored.get("accepted_by") or "–", str(stored.get("at", "–"))[:10]
        sentence = t("system.accepted", language, licence=LICENCE, who=who, when=when)
    else:
        sentence = t("system.not_accepted", language, licence=LICENCE)
    return {
        "state": note(sentence),
        "agree": {"visible": not agreed},
        "withdraw": {"visible": agreed and not by_variable},
    }


def withdraw_consent() -> None:
    """Remove the consent; downloaded models stay."""
    if os.environ.get(VARIABLE) == "1":
        raise LicenceError(f"The consent comes from the variable {VARIABLE}.", hint="Unset it and start again.")
    try:
        paths.LICENCE_CONSENT.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(paths.LICENCE_CONSENT, error) from error


def licence_text() -> str:
    """Return the text from the hub; it is downloaded once."""
    path = paths.MODELS / LICENCE_FILE
    if not path.is_file():
        make_folder(paths.MODELS)
        found = file_info(LICENCE_FILE, "main")
        if found is None:
            raise StorageError(f"The hub has no {LICENCE_FILE}.", hint="Read the licence where the model is published.")
        download(found, paths.MODELS, lambda _: None)
    return read_text(path)


# --- the downloads ---


def build_downloads(page: PageContext) -> None:
    """Lay out the table, the version and the buttons that download, pause, cancel and delete."""
    models = gr.HTML(elem_id="base-models")
    version: Any = build_form(DownloadConfig, only=["version"])["version"]
    version.elem_id = "download-version"
    progress_html = gr.HTML(elem_id="download-progress")
    options: dict[str, Any] = {"visible": False, "min_width": 130}
    with gr.Row():
        start = gr.Button(t("system.download"), variant="primary", elem_id="download", **options)
        pause = gr.Button(t("system.pause"), elem_id="pause-download", **options)
        cancel = gr.Button(t("system.cancel_download"), variant="stop", elem_id="cancel-download", **options)
        delete = gr.Button(t("system.delete_version"), variant="stop", elem_id="delete-version", **options)
    confirmation = build_confirmation(
        "download-question", "system.confirm_delete_version", "system.cancel_delete_version"
    )
    live = {
        "models": models,
        "progress": progress_html,
        "system.download": start,
        "system.pause": pause,
        "system.cancel_download": cancel,
        "system.delete_version": delete,
    }

    def state(chosen: str | None, language: str) -> dict[str, Any]:
        return download_state(page.output, chosen, language)

    def act(action: Callable[[str], object], phrase: str) -> Callable[..., list[Any]]:
        def acted(chosen: str, language: str) -> list[Any]:
            action(chosen)
            notify(t(phrase, language))
            return changed_updates({}, state(chosen, language), live)

        return show_errors(acted)

    def ask(chosen: str, language: str) -> str:
        return t("system.ask_delete_version", language, name=chosen)

    @show_errors
    def delete_version(chosen: str, language: str, asked: object) -> list[Any]:
        refuse_other(asked, chosen)
        size = downloads.delete(chosen, page.output)
        notify(t("system.freed", language, size=f"{size / 1e6:,.0f}"))
        return changed_updates({}, state(chosen, language), live)

    inputs = [version, page.language]
    outputs = connect_live(page, state, inputs, live, [version.change])
    for button, action, phrase, name in (
        (start, lambda chosen: downloads.start(chosen, page.output), "system.download_started", "download_model"),
        (pause, lambda _: downloads.pause(page.output), "system.download_paused", "pause_download"),
        (cancel, lambda _: downloads.cancel(page.output), "system.download_cancelled", "give_up_download"),
    ):
        button.click(act(action, phrase), inputs, outputs, api_name=name, **RAW_INPUTS)
    options = {"api_name": "delete_model", **RAW_INPUTS}
    confirmation.connect(delete, [version], page.language, ask, delete_version, outputs, **options)


def download_state(output: Path, version: str | None, language: str) -> dict[str, Any]:
    """Return updates of the table and the buttons, whose keys are the ids of their labels."""
    models = [downloads.base_model(name) for name in downloads.VERSIONS]
    chosen = next((model for model in models if model.version == version), None)
    run = downloads.current(output)
    actions = available_actions(
        chosen,
        busy=run is not None and run.current_state().status in runs.ACTIVE,
        unfinished=run is not None and any(model.is_begun for model in models),
        consent=version == TINY or not downloads.needs_consent(),
    )
    return {
        "models": models_table(models, language),
        "progress": _run_html(run, language) if run else "",
        **{button: {"visible": can_act} for button, can_act in actions.items()},
    }


def available_actions(model: BaseModel | None, *, busy: bool, unfinished: bool, consent: bool) -> dict[str, bool]:
    """Return whether each button can act, by the id of its label."""
    on_disk = model is not None and bool(model.files or model.is_begun) and model.version != TINY
    return {
        "system.download": consent and not busy and model is not None and not model.is_whole,
        "system.pause": busy,
        "system.cancel_download": busy or unfinished,
        "system.delete_version": on_disk and not busy,
    }


def models_table(models: list[BaseModel], language: str) -> str:
    rows = []
    for model in models:
        begun = "incomplete" if model.files or model.is_begun else "not_installed"
        state = t(f"system.{'installed' if model.is_whole else begun}", language)
        rows.append([cell(model.version, classes="mark"), cell(state), cell(f"{model.size / 1e6:,.0f} MB")])
    return table([t(title, language) for title in ("system.base_version", "common.state", "system.size_disk")], rows)


def _run_html(run: runs.Run, language: str) -> str:
    state = run.current_state()
    try:
        version, current = downloads.version_of(run), downloads.progress(run)
    except AmharicTtsError as error:
        return note(describe_error(error, language))
    status = f"{version} · {t(f'status.{state.status}', language)} {state.message}"
    if current is None or state.status is runs.Status.FINISHED:
        return note(status)
    done, total = f"{current.done / 1e6:,.0f}", f"{current.total / 1e6:,.0f}"
    label = t("system.download_progress", language, done=done, total=total, part=current.part)
    left = time_left(current.seconds_left, language) if current.done < current.total else ""
    return progress(" · ".join(filter(None, (status, label, left))), current.done, current.total)
