"""The clip table and the clip that is chosen in it: their widgets, and what is shown in them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import gradio as gr

from utils.core.errors import AmharicTtsError
from utils.dataset import editor, queries
from utils.dataset.queries import View
from utils.dataset.store import Store
from utils.ui.i18n import describe_error, heading, t, translate
from utils.ui.page import PageContext
from utils.ui.tabs.data import clip_render, render, start
from utils.ui.tabs.data.clip_editor_widgets import HEARD_REASONS, buttons, filters, mark_values, marks, reason_picker
from utils.ui.views import disabled_reasons, note

EDITS = {
    "approve": "data.edit_approve",
    "exclude": "data.edit_exclude",
    "restore": "data.edit_restore",
    "text": "data.edit_text",
    "trim": "data.edit_trim",
    "split": "data.edit_split",
    "merge": "data.edit_merge",
}

State = list[Any] | str  # what was shown, or why nothing could be


@dataclass(frozen=True)
class Given:
    """What a handler of the table is given: the open project, the language of the page, the filter, and the clip."""

    project: str
    page_language: str
    status: str
    reason: str
    search: str
    order: str
    page: float | None
    clip: str

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Given":
        """Take what belongs here out of all that a handler was given; a box may hold nothing."""
        given: dict[str, Any] = {one.name: values[one.name] for one in fields(cls)}
        given |= {name: "" for name, value in given.items() if value is None and name != "page"}
        return cls(**given)

    @property
    def view(self) -> View:
        """Return which clips are wanted."""
        return View(self.status or "kept", self.reason, self.search, self.order or "worst")

    @property
    def number(self) -> int:
        """Return the page that is wanted."""
        return int(self.page) if isinstance(self.page, int | float) and self.page >= 1 else 1

    def with_clip(self, name: str) -> "Given":
        """Return the same with another clip."""
        return replace(self, clip=name)


class Desk:
    """The table and the clip on it.

    Args:
        page: The frame around it.
    """

    def __init__(self, page: PageContext) -> None:
        self.page = page
        self.filters = filters()
        self.table = gr.HTML(elem_id="clips", js_on_load=clip_render.SCRIPT)
        with gr.Row():
            self.earlier = gr.Button(t("data.previous_page"), elem_id="earlier", min_width=120, interactive=False)
            self.later = gr.Button(t("data.next_page"), elem_id="later", min_width=120, interactive=False)
            self.undo = gr.Button(t("data.undo_last"), elem_id="undo", min_width=160, interactive=False)
        self.pager = gr.HTML(elem_id="pager")
        self.ticked = gr.JSON([], label=t("data.selected_clips"), visible=False)
        gr.Markdown(heading("data.selected_clip", level=3))
        self.chosen = gr.Textbox(label=t("common.clip"), visible=False)
        self.clip = gr.HTML(elem_id="clip-view", js_on_load=clip_render.WAVE_SCRIPT)
        self.text = gr.Textbox(
            label=t("data.clip_text"),
            info=t("data.clip_text_hint"),
            lines=3,
            elem_id="clip-text",
            interactive=True,
        )
        self.buttons = buttons("data.save_text", "data.approve", "data.restore", "data.merge_next")
        with gr.Row(elem_classes="beside"):
            self.why = reason_picker(HEARD_REASONS, "data.exclude_reason", "data.exclude_reason_hint", "aside-reason")
            self.buttons |= buttons("data.exclude")
        self.marks = marks()
        with gr.Row():
            self.play = gr.Button(t("data.play_selection"), elem_id="play-part", min_width=120, interactive=False)
            self.buttons |= buttons("data.trim", "data.split")
        self.buttons = {label: self.buttons[label] for label in clip_render.NOTHING_CHOSEN.named}
        self.reasons = gr.HTML(elem_id="clip-reasons")
        with gr.Accordion(t("common.pronunciation_preview"), open=False):
            self.explained = gr.HTML(elem_id="clip-explained")
        self.seen = gr.State(None)

    @property
    def given(self) -> dict[str, Any]:
        """Return the widgets that ``Given`` is made of, by its names."""
        frame = {"project": self.page.project, "page_language": self.page.language}
        return {**frame, **self.filters, "clip": self.chosen}

    @property
    def listing(self) -> list[Any]:
        """Return what ``listed`` fills."""
        return [
            self.seen,
            self.table,
            self.pager,
            self.filters["reason"],
            self.filters["page"],
            self.earlier,
            self.later,
            self.undo,
        ]

    @property
    def editor(self) -> list[Any]:
        """Return what ``edited`` fills."""
        buttons = [*self.buttons.values(), self.play]
        return [self.chosen, self.clip, self.text, self.reasons, *buttons, *self.marks.values()]

    def open(self, given: Given) -> Store:
        """Return the store of the open project."""
        return Store(self.page.open(given.project).dataset)

    def state(self, given: Given) -> State:
        """Return what tells one look of the table from another."""
        try:
            return state_of(given, self.open(given))
        except AmharicTtsError as error:
            return describe_error(error, given.page_language)

    def listed(self, given: Given, number: int) -> list[Any]:
        """Show one page of clips; what cannot be read is said in its place, because this is asked on every tick."""
        try:
            return self._listed(given, self.open(given), number)
        except AmharicTtsError as error:
            message = describe_error(error, given.page_language)
            return _unlisted(message, message)

    def _listed(self, given: Given, store: Store, number: int) -> list[Any]:
        if not store.exists:
            return _unlisted(state_of(given, store), t(render.NO_CLIPS, given.page_language))
        found, renewed = queries.reasons(store), gr.update()
        if given.reason not in ("", *found):  # it is one of another project, or its last clip was restored
            given, renewed = replace(given, reason=""), gr.update(value="")
        page = queries.page(store, given.view, number)
        choices = [(t("data.any_reason", given.page_language), "")]
        choices += [(f"{translate(reason, given.page_language)} ({count})", reason) for reason, count in found.items()]
        return [
            state_of(given, store),
            clip_render.rows(page, given.clip, store.folder, given.page_language),
            clip_render.pager(page, given.page_language),
            renewed | {"choices": choices},
            page.number,
            gr.update(interactive=page.number > 1),
            gr.update(interactive=page.number < page.pages),
            undoable(store.folder, given.page_language),
        ]

    def edited(self, given: Given, name: str) -> list[Any]:
        """Show the chosen clip with what can be done with it; without one, say so."""
        try:
            store = self.open(given)
            clip = store.find([name]).get(name) if name and store.exists else None
            following = editor.next_clip(store, clip) if clip else None
        except AmharicTtsError as error:
            return self._unedited(describe_error(error, given.page_language), given.page_language)
        if clip is None:
            return self._unedited(t("data.choose_clip_first", given.page_language), given.page_language)
        busy = start.at_work(self.page.open(given.project)) is not None
        found = clip_render.abilities(clip, following, busy=busy)
        locks = [gr.update(interactive=not reason) for reason in found.named.values()]
        return [
            name,
            clip_render.details(clip, store.folder, given.page_language),
            clip.text,
            disabled_reasons(found.named, given.page_language),
            *locks,
            gr.update(interactive=bool(clip.audio)),
            *mark_values(clip),
        ]

    def _unedited(self, sentence: str, language: str) -> list[Any]:
        why = disabled_reasons(clip_render.NOTHING_CHOSEN.named, language)
        shut = [gr.update(interactive=False)] * (len(self.buttons) + 1 + len(self.marks))
        return ["", note(sentence), "", why, *shut]


def _unlisted(state: State, sentence: str) -> list[Any]:
    return [state, note(sentence), "", gr.update(choices=[]), 1, *[gr.update(interactive=False)] * 3]


def undoable(folder: Path, language: str) -> Any:  # noqa: ANN401  # gradio's updates have no type
    """Say on the button what it takes back."""
    name = editor.last_edit(folder)
    if not name:
        return gr.update(interactive=False, value=t("data.undo_last", language))
    what = t(EDITS.get(name, name), language)
    return gr.update(interactive=True, value=t("data.undo", language, what=what))


def state_of(given: Given, store: Store) -> State:
    """Return what tells one look of a dataset from another."""
    return [given.project, given.page_language, store.meta("revision") if store.exists else None]
