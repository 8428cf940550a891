"""The takes: the chosen one with its files and sentences, and the history of all."""

from typing import Any

import gradio as gr

from utils.core.errors import AmharicTtsError
from utils.core.paths import Project
from utils.ui.i18n import t
from utils.ui.page import QUIET_EVENT, RAW_INPUTS, show_errors
from utils.ui.tabs.inference import render
from utils.ui.tabs.inference.context import Room, fault
from utils.ui.tabs.inference.sentence_editor import build_again
from utils.ui.tabs.inference.take_render import TakeView, format_picker, links, write_file
from utils.ui.views import message_box
from utils.workspace import takes


def build_sound_and_sentences(room: Room, chosen: gr.Radio, sound: gr.Audio) -> TakeView:
    """Lay out what is known of the chosen take, and its sentences."""
    facts = gr.HTML(elem_id="take-facts")
    with gr.Row():
        ending = format_picker(".mp3", "format")
        make = gr.Button(t("inference.convert"), min_width=140, elem_id="make-file")
    files = gr.HTML(elem_id="take-files")
    with gr.Accordion(t("inference.sentences"), open=True):
        sentences = gr.Radio(
            [], label=t("inference.take_sentences"), interactive=True, elem_id="sentences", elem_classes="long-list"
        )
        redone = gr.State(None)
        view = TakeView(room, chosen, sound, facts, sentences, files, redone)
        build_again(view)

    def make_file(project: str, name: str | None, ending: str, language: str) -> str:
        try:
            place = room.open(project)
            take = takes.find(place, name)
            write_file(place, take, ending)
            return render.downloads(links(place, take))
        except AmharicTtsError as error:
            return fault(error, language)

    make.click(
        make_file, [room.page.project, chosen, ending, room.page.language], files, api_name="make_file", **RAW_INPUTS
    )
    events: list[Any] = [chosen.change, room.page.language.change]
    gr.on(events, show_errors(view.show), view.given, view.outputs, api_name="show_take", **RAW_INPUTS, **QUIET_EVENT)
    return view


def build_history() -> tuple[gr.Radio, dict[str, gr.Button]]:
    """Lay out the list of takes with what can be done with one."""
    chosen = gr.Radio(
        [], label=t("inference.takes_newest_first"), interactive=True, elem_id="takes", elem_classes="long-list"
    )
    with gr.Row():
        buttons = {
            "restore": gr.Button(t("inference.reuse"), elem_id="restore-settings"),
            "delete": gr.Button(t("inference.delete_take"), elem_id="delete-take"),
            "undo": gr.Button(t("inference.undo_deletion"), interactive=False, elem_id="undo-delete"),
        }
    return chosen, buttons


def tie_history(view: TakeView, text: gr.Textbox, buttons: dict[str, gr.Button], status: gr.HTML) -> None:
    """Act on the chosen take."""
    room = view.room

    def act(action: Any, sentence: str) -> Any:  # noqa: ANN401  # a handler
        def acted(project: str, name: str | None, language: str) -> tuple[Any, Any]:
            try:
                place = room.open(project)
                done = action(place, name)
            except AmharicTtsError as error:
                return fault(error, language), gr.skip()
            choices = listed(place, done if done != name else None, language)["chosen"]
            shown = {"value": done if done != name else None} | choices
            return message_box("success", t(sentence, language)), gr.update(**shown)

        return acted

    delete = act(takes.delete, "inference.take_deleted")
    undo = act(lambda place, _: takes.restore(place), "inference.take_restored")
    buttons["delete"].click(
        delete, view.given, [status, view.chosen], api_name="delete_take", **RAW_INPUTS, **QUIET_EVENT
    )
    buttons["undo"].click(
        undo, view.given, [status, view.chosen], api_name="undo_delete_take", **RAW_INPUTS, **QUIET_EVENT
    )
    _tie_restore(view, text, buttons["restore"], status)


def _tie_restore(view: TakeView, text: gr.Textbox, button: gr.Button, status: gr.HTML) -> None:
    form = view.room.form

    def restore(project: str, name: str | None, language: str) -> list[Any]:
        try:
            take = takes.find(view.room.open(project), name)
        except AmharicTtsError as error:
            return [fault(error, language), *[gr.skip()] * (1 + len(form))]
        done = message_box("success", t("inference.take_reused", language))
        return [done, take.text, *(take.settings.get(field, gr.skip()) for field in form)]

    button.click(
        restore, view.given, [status, text, *form.values()], api_name="restore_take", **RAW_INPUTS, **QUIET_EVENT
    )


def listed(place: Project, name: str | None, language: str) -> dict[str, Any]:
    """Return what the list of takes shows; a choice that is still there stays."""
    found, undo = takes.newest(place), bool(takes.deleted(place))
    choices: dict[str, Any] = {"choices": [(render.take_title(one, language), one.name) for one in found]}
    if name not in [one.name for one in found]:
        choices["value"] = found[0].name if found else None
    able = {"interactive": bool(found)}
    return {"chosen": choices, "restore": able, "delete": dict(able), "undo": {"interactive": undo}}
