"""The licence of the published model: summary, text, and consent."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from utils.core import paths
from utils.core.errors import StorageError
from utils.core.storage import make_folder, read_json, read_text, storage_error
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, PageContext, changed_updates, notify, show_errors
from utils.ui.views import note
from utils.xtts.hub import LICENCE, VARIABLE, LicenceError, accept_licence, download, file_info, licence_accepted

FILE = "LICENSE.txt"  # beside the model on the hub


def build_licence(page: PageContext) -> None:
    """Lay out summary, state and buttons."""
    gr.Markdown(t("system.licence_summary"))
    state = gr.HTML(elem_id="licence-state")
    name = gr.Textbox(
        label=t("common.your_name"),
        info=t("system.your_name_hint"),
        max_lines=1,
        interactive=True,
        elem_id="licence-name",
    )
    with gr.Row():
        agree = gr.Button(t("system.accept_licence"), interactive=False, min_width=150, elem_id="agree")
        withdraw = gr.Button(t("system.withdraw_consent"), interactive=False, min_width=150, elem_id="withdraw")
        show = gr.Button(t("system.show_licence"), min_width=150, elem_id="show-licence")
    text = gr.Textbox(
        label=t("system.licence_text"), lines=12, max_lines=12, interactive=False, visible=False, elem_id="licence-text"
    )
    _connect(page, name, [gr.State({}), state, agree, withdraw], show, text)


def _connect(page: PageContext, name: gr.Textbox, outputs: list[Any], show: gr.Button, text: Any) -> None:  # noqa: ANN401
    shown, _, agree, withdraw = outputs

    @show_errors
    def consent(person: str, language: str) -> list[Any]:
        accept_licence(person or "", paths.LICENCE_CONSENT)
        notify(t("common.consent_saved", language))
        return licence_state(language)

    @show_errors
    def withdraw_and_show(language: str) -> list[Any]:
        withdraw_consent()
        notify(t("system.consent_withdrawn", language))
        return licence_state(language)

    @show_errors
    def read() -> Any:  # noqa: ANN401  # gradio's updates have no type
        return gr.update(value=licence_text(), visible=True)

    gr.on(page.refresh, show_errors(licence_state), [page.language, shown], outputs, **PRIVATE_EVENT)
    agree.click(consent, [name, page.language], outputs, api_name="agree_to_licence")
    withdraw.click(withdraw_and_show, page.language, outputs, api_name="withdraw_consent")
    show.click(read, None, text, api_name="licence_text")


def licence_state(language: str, before: Mapping[str, Any] | None = None) -> list[Any]:
    """Return updates of the state and the buttons; only what differs from ``before``."""
    agreed, by_variable = licence_accepted(paths.LICENCE_CONSENT), os.environ.get(VARIABLE) == "1"
    sentence = _state(language, agreed=agreed, by_variable=by_variable)
    after = {
        "state": note(sentence),
        "agree": {"interactive": not agreed},
        "withdraw": {"interactive": agreed and not by_variable},
    }
    return changed_updates(before or {}, after, after)


def _state(language: str, *, agreed: bool, by_variable: bool) -> str:
    if by_variable:
        return t("system.accepted_by_variable", language, name=VARIABLE)
    if not agreed:
        return t("system.not_accepted", language, licence=LICENCE)
    who, when = _agreed_by(paths.LICENCE_CONSENT)
    return t("system.accepted", language, licence=LICENCE, who=who or "–", when=when)


def _agreed_by(path: Path) -> tuple[str, str]:
    stored = read_json(path)
    return str(stored.get("accepted_by", "")), str(stored.get("at", "–"))[:10]


def withdraw_consent() -> None:
    """Remove the consent; downloaded models stay."""
    if os.environ.get(VARIABLE) == "1":
        raise LicenceError(f"The consent comes from the variable {VARIABLE}.", hint="Unset it and start again.")
    try:
        paths.LICENCE_CONSENT.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(paths.LICENCE_CONSENT, error) from error


def licence_text(endpoint: str | None = None) -> str:
    """Return the text from the hub; it is downloaded once.

    Args:
        endpoint: Address of the hub; None for HF_ENDPOINT or the public one.
    """
    path = paths.MODELS / FILE
    if not path.is_file():
        make_folder(paths.MODELS)
        found = file_info(FILE, "main", endpoint)
        if found is None:
            raise StorageError(f"The hub has no {FILE}.", hint="Read the licence where the model is published.")
        download(found, paths.MODELS, lambda _: None)
    return read_text(path)
