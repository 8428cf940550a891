"""The clip table, the selected clip, and every change that can be made to it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr

from utils import runs
from utils.amharic import explain
from utils.core.errors import AmharicTtsError, DataError, RunBusyError
from utils.core.paths import Project
from utils.dataset import editor, queries
from utils.dataset.editor import Edit
from utils.dataset.queries import View
from utils.dataset.store import Store
from utils.ui.i18n import describe_error, labels, phrases, t, translate
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, RAW_INPUTS, Advanced, PageContext, notify, show_errors
from utils.ui.tabs import pronunciation
from utils.ui.tabs.data import clip_render
from utils.ui.tabs.data.clip_widgets import (
    AUDIBLE_REASONS,
    MARKS,
    build_buttons,
    build_filters,
    mark_updates,
    reason_picker,
)
from utils.ui.views import note

WRITERS = ("prepare", "features", "train")  # runs during which clips must not change
Values = Mapping[str, Any]  # of the widgets, by name
Action = Callable[[Path, Values], Edit]  # changes a dataset


class TableInputs(NamedTuple):
    """What every handler of the table reads."""

    project: str
    page_language: str
    status: str
    reason: str
    search: str
    order: str
    clip: str
    page: int

    @classmethod
    def read(cls, values: Values) -> "TableInputs":
        """Pick them out of all values of a handler; a box may be empty, and a program may send anything."""
        page = values["page"]
        texts = {name: "" if values[name] is None else values[name] for name in cls._fields if name != "page"}
        return cls(**texts, page=int(page) if isinstance(page, int | float) and page >= 1 else 1)


def _script(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


class ClipPanel:
    """The widgets of the table and of the chosen clip, and what is shown in them."""

    def __init__(self, page: PageContext, advanced: Advanced) -> None:
        self.page = page
        with gr.Row():
            with gr.Column(scale=6, min_width=340):
                self._build_table(advanced)
            with gr.Column(scale=5, min_width=340, visible=False, elem_id="clip-editor") as self.editor:
                self._build_editor()
        self.seen = gr.State(None)  # what this visitor was shown last

        # What ``TableInputs`` is read from, and where the results of ``show_table`` and ``show_clip`` go.
        frame = {"project": page.project, "page_language": page.language}
        self.inputs: dict[str, Any] = {**frame, **self.filters, "clip": self.chosen}
        turning = [self.earlier, self.later, self.undo]
        filters = [self.filters["reason"], self.filters["page"]]
        self.table_outputs: list[Any] = [self.seen, self.table, self.pager, *filters, *turning]
        widgets = [self.editor, self.chosen, self.clip, self.text, *self.buttons.values(), self.play]
        self.clip_outputs: list[Any] = [*widgets, *self.marks.values()]
        self.outputs: list[Any] = [*self.table_outputs, *self.clip_outputs]

    def _build_table(self, advanced: Advanced) -> None:
        self.filters = build_filters(advanced)
        self.table = gr.HTML(elem_id="clips", js_on_load=_script("clip_table.js"))
        with gr.Row():
            self.earlier = gr.Button(t("data.previous_page"), elem_id="earlier", min_width=100, visible=False)
            self.later = gr.Button(t("data.next_page"), elem_id="later", min_width=100, visible=False)
            self.undo = gr.Button(t("data.undo_last"), elem_id="undo", min_width=140, visible=False)
        self.pager = gr.HTML(elem_id="pager")
        self.ticked = gr.JSON([], label=t("data.selected_clips"), visible=False)

    def _build_editor(self) -> None:
        self.chosen = gr.Textbox(label=t("common.clip"), visible=False)
        self.clip = gr.HTML(elem_id="clip-view", js_on_load=_script("waveform.js"))
        self.text = gr.Textbox(lines=2, elem_id="clip-text", interactive=True, **labels("data.clip_text"))
        with gr.Accordion(t("common.pronunciation_preview"), open=False):
            self.explanation = gr.HTML(elem_id="clip-explained")
        buttons = build_buttons("data.save_text", "data.approve", "data.restore", "data.merge_next")
        with gr.Row(elem_classes="beside"):
            self.reason = reason_picker(AUDIBLE_REASONS, "aside-reason", **labels("data.exclude_reason"))
            buttons |= build_buttons("data.exclude")
        with gr.Row(elem_classes="fields"):
            options: dict[str, Any] = {"value": 0, "step": 0.01, "interactive": True, "visible": False}
            self.marks = {
                name: gr.Slider(0, 12, elem_id=f"mark-{name}", **options, **labels(key)) for name, key in MARKS.items()
            }
        with gr.Row():
            self.play = gr.Button(t("data.play_selection"), elem_id="play-part", min_width=100, visible=False)
            buttons |= build_buttons("data.trim", "data.split")
        self.buttons = {label: buttons[label] for label in clip_render.ACTIONS}

    def show(self, inputs: TableInputs) -> list[Any]:
        return [*self.show_table(inputs), *self.show_clip(inputs)]

    def version(self, inputs: TableInputs) -> list[Any] | str:
        """Return what a change of the table changes, or the error that is shown instead of it."""
        try:
            store = self._store(inputs)
            return [inputs.project, inputs.page_language, store.meta("revision") if store.exists else None]
        except AmharicTtsError as error:
            return describe_error(error, inputs.page_language)

    def show_table(self, inputs: TableInputs) -> list[Any]:
        """Show a page of clips; an error is shown in its place, because this runs on every tick."""
        version, language = self.version(inputs), inputs.page_language
        try:
            store = self._store(inputs)
            if store.exists:
                return [version, *self._page(store, inputs)]
            message = t("data.no_clips", language)
        except AmharicTtsError as error:
            version = message = describe_error(error, language)
        return [version, note(message), "", gr.update(choices=[]), 1, *[gr.update(visible=False)] * 3]

    def _store(self, inputs: TableInputs) -> Store:
        return Store(self.page.open(inputs.project).dataset)

    def _page(self, store: Store, inputs: TableInputs) -> list[Any]:
        language, counts, reason = inputs.page_language, queries.reasons(store), inputs.reason
        choices = [(t("data.any_reason", language), "")]
        choices += [(f"{translate(name, language)} ({count})", name) for name, count in counts.items()]
        picker = gr.update(choices=choices)
        if reason not in ("", *counts):  # of another project, or its last clip was restored
            reason = picker["value"] = ""
        view = View(inputs.status or "kept", reason, inputs.search, inputs.order or "worst")
        page = queries.page(store, view, inputs.page)
        return [
            clip_render.rows(page, inputs.clip, store.folder, language),
            note(t("data.page_of", language, number=page.number, pages=page.pages, total=page.total)),
            picker,
            page.number,
            gr.update(visible=page.number > 1),
            gr.update(visible=page.number < page.pages),
            _undo_update(store.folder, language),
        ]

    def show_clip(self, inputs: TableInputs) -> list[Any]:
        """Show the chosen clip and what can be done with it; without one, nothing."""
        try:
            store = self._store(inputs)
            clip = store.find([inputs.clip]).get(inputs.clip) if inputs.clip and store.exists else None
            is_busy = clip is not None and runs.active_run(self.page.open(inputs.project), *WRITERS) is not None
        except AmharicTtsError:  # shown by the table
            clip = None
        if clip is None:
            hidden = [gr.update(visible=False)] * (1 + len(self.buttons))
            return [gr.update(visible=False), "", "", "", *hidden, *mark_updates(None)]
        shown = clip_render.details(clip, store.folder, inputs.page_language)
        if is_busy:
            shown += note(t("data.clips_in_use_by_run", inputs.page_language))
        actions = clip_render.available_actions(clip, editor.next_clip(store, clip))
        buttons = [gr.update(visible=can_act and not is_busy) for can_act in actions.values()]
        play = gr.update(visible=bool(clip.audio))
        return [gr.update(visible=True), clip.id, shown, clip.text, *buttons, play, *mark_updates(clip)]

    def save_edited_text(self, inputs: TableInputs, text: str) -> None:
        """Save the text of the selected clip if it was edited, before another one takes its place."""
        store = self._store(inputs)
        clip = store.find([inputs.clip]).get(inputs.clip) if inputs.clip and store.exists else None
        if clip and text.strip() and text != clip.text:
            refuse_while_busy(self.page.open(inputs.project))
            editor.set_text(store.folder, clip.id, text)
            notify(t("data.text_saved", inputs.page_language))

    def connect(self, button: gr.Button, action: Action, more: Mapping[str, Any], name: str, js: str = "") -> None:
        """Change clips when a button is pressed, say so, and show the result.

        The action reads the widgets in ``more`` beside those of the table; ``js`` changes their values in the browser.
        """

        @show_errors
        def act(**values: Any) -> list[Any]:  # noqa: ANN401  # of many kinds
            inputs = TableInputs.read(values)
            project, language = self.page.open(inputs.project), inputs.page_language
            refuse_while_busy(project)
            edit = action(project.dataset, {name: "" if value is None else value for name, value in values.items()})
            notify(t("data.done_count", language, what=_edit_name(edit.name, language), count=len(edit.clips)))
            shown = next((clip.id for clip in edit.clips if clip.status == "kept"), inputs.clip)
            return self.show(inputs._replace(clip=shown))

        button.click(
            act,
            inputs_kwargs={**self.inputs, **more},
            outputs=self.outputs,
            js=js or None,
            api_name=name,
            concurrency_limit=None,
            show_progress_on=self.pager,
            **RAW_INPUTS,
        )


def refuse_while_busy(project: Project) -> None:
    if run := runs.active_run(project, *WRITERS):
        raise RunBusyError(
            f"{run.name} is running, so clips cannot be changed now.", hint="Stop it first, or wait until it ends."
        )


def _edit_name(name: str, language: str) -> str:
    key = f"data.edit_{name}"
    return t(key, language) if key in phrases() else name  # the command line has more kinds of edits


def _undo_update(folder: Path, language: str) -> dict[str, Any]:
    """Name on the button what it undoes."""
    name = editor.last_edit(folder)
    label = t("data.undo", language, what=_edit_name(name, language)) if name else t("data.undo_last", language)
    return gr.update(visible=bool(name), value=label)


def build_clips(page: PageContext, advanced: Advanced) -> ClipPanel:
    panel = ClipPanel(page, advanced)
    for bind in (_bind_table, _bind_choice, _bind_actions, _bind_explanation):
        bind(panel)
    return panel


def _handler(show: Callable[[TableInputs], list[Any]]) -> Callable[..., list[Any]]:
    @show_errors
    def handle(**values: Any) -> list[Any]:  # noqa: ANN401  # of many kinds
        return show(TableInputs.read(values))

    return handle


def _bind_table(panel: ClipPanel) -> None:
    """Show a page when the filter, the page or the dataset changes."""

    def turn(by: int) -> Callable[..., list[Any]]:
        return _handler(lambda inputs: panel.show_table(inputs._replace(page=inputs.page + by)))

    @show_errors
    def refresh(seen: object, **values: Any) -> list[Any] | dict[str, Any]:  # noqa: ANN401  # of many kinds
        """Show the page again when the dataset has changed since this visitor saw it."""
        inputs = TableInputs.read(values)
        return gr.skip() if panel.version(inputs) == seen else panel.show_table(inputs)

    options: dict[str, Any] = {"outputs": panel.table_outputs, **RAW_INPUTS}
    turned: dict[str, Any] = {"inputs_kwargs": panel.inputs, "trigger_mode": "always_last", **QUIET_EVENT, **options}
    # The input event of a text comes before its value, and a dropdown has one more when it is left.
    changes = [panel.filters["page"].input]
    changes += [panel.filters[name].change for name in ("search", "status", "reason", "order")]
    gr.on(changes, turn(0), api_name="clips", **turned)
    panel.earlier.click(turn(-1), api_name="earlier_clips", **turned)
    panel.later.click(turn(1), api_name="later_clips", **turned)
    gr.on(panel.page.refresh, refresh, inputs_kwargs={"seen": panel.seen, **panel.inputs}, **options, **PRIVATE_EVENT)


def _bind_choice(panel: ClipPanel) -> None:
    """Show the clip that is selected in the table; none is selected after the project has changed."""

    @show_errors
    def choose(event: gr.EventData, text: str, *values: Any) -> list[Any]:  # noqa: ANN401  # positional beside an event
        inputs = TableInputs.read(dict(zip(panel.inputs, values, strict=True)))
        panel.save_edited_text(inputs, text)
        return panel.show(inputs._replace(clip=str(getattr(event, "clip", inputs.clip))))

    page, marks = panel.page, list(panel.marks.values())
    values = [panel.text, *panel.inputs.values()]
    shown: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden", "concurrency_limit": None}
    panel.table.select(choose, values, panel.outputs, **RAW_INPUTS, **shown)  # in the queue, else it could not notify
    options: dict[str, Any] = {"inputs_kwargs": panel.inputs, **RAW_INPUTS}
    panel.chosen.submit(_handler(panel.show), outputs=panel.outputs, api_name="clip", **options, **QUIET_EVENT)
    options |= {"outputs": panel.clip_outputs, **PRIVATE_EVENT}
    gr.on([page.blocks.load, page.language.change], _handler(panel.show_clip), **options)
    page.project.change(_handler(lambda inputs: panel.show_clip(inputs._replace(clip=""))), **options)
    gr.on([mark.change for mark in marks], None, marks, None, js=_script("marks.js"), api_visibility="private")
    panel.play.click(None, marks[:2], None, js=_script("play_selection.js"), api_visibility="private")


def _bind_actions(panel: ClipPanel) -> None:
    actions: dict[str, tuple[str, Action]] = {
        "data.save_text": ("save_text", lambda folder, of: editor.set_text(folder, of["clip"], of["text"])),
        "data.approve": ("approve_clip", lambda folder, of: editor.approve(folder, [of["clip"]])),
        "data.exclude": ("set_clip_aside", lambda folder, of: editor.exclude(folder, [of["clip"]], str(of["why"]))),
        "data.restore": ("restore_clip", lambda folder, of: editor.restore(folder, [of["clip"]])),
        "data.trim": (
            "trim_clip",
            lambda folder, of: editor.trim(folder, of["clip"], _seconds(of["start"]), _seconds(of["end"])),
        ),
        "data.split": ("split_clip", lambda folder, of: editor.split_clip(folder, of["clip"], _seconds(of["at"]))),
        "data.merge_next": ("merge_clips", lambda folder, of: editor.merge_next(folder, of["clip"])),
    }
    more = {"text": panel.text, "why": panel.reason, **panel.marks}
    for label, (name, action) in actions.items():
        panel.connect(panel.buttons[label], action, more, name)
    panel.connect(panel.undo, lambda folder, _: editor.undo(folder), {}, "undo_edit")


def _seconds(value: object) -> float:
    """Return the value of a mark; a program may send anything."""
    if not isinstance(value, int | float):
        raise DataError("A time is missing.", hint="Enter it in seconds from the start of the clip.")
    return value


def _bind_explanation(panel: ClipPanel) -> None:
    @show_errors
    def show_explanation(text: str, language: str) -> str:
        return pronunciation.show(explain(text), language) if text else ""

    text, language = panel.text, panel.page.language
    options: dict[str, Any] = {"trigger_mode": "always_last", **RAW_INPUTS, **PRIVATE_EVENT}
    gr.on([text.change, language.change], show_explanation, [text, language], panel.explanation, **options)
