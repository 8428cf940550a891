"""The clip table and the clip that is chosen in it: their widgets, and what is shown in them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import gradio as gr

from utils.dataset import corrections
from utils.dataset.clip import Clip
from utils.errors import AmharicTtsError
from utils.paths import Project
from utils.ui import faults
from utils.ui.data import clip_views, starting
from utils.ui.data.shelf import Shelf, Shelved, View
from utils.ui.page import Page
from utils.ui.views import note
from utils.ui.words import say

STATUSES = {"all": "All clips", "kept": "In use", "approved": "Approved", "aside": "Not in use"}
ORDERS = {
    "worst": "The most doubtful first",
    "recording": "As in the recordings",
    "longest": "The longest first",
    "shortest": "The shortest first",
    "noisiest": "The noisiest first",
}
HEARD_REASONS = ("not what is said", "noise", "another voice", "cut off", "music")
EDITS = {
    "approve": "approval",
    "set aside": "setting aside",
    "restore": "restoring",
    "text": "change of a text",
    "trim": "trimming",
    "split": "splitting",
    "merge": "joining",
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
        shelf: Reads the dataset.
    """

    def __init__(self, page: Page, shelf: Shelf) -> None:
        self.page, self.shelf = page, shelf
        self.filters = _filters()
        self.table = gr.HTML(elem_id="clips", js_on_load=clip_views.SCRIPT)
        with gr.Row():
            self.earlier = gr.Button("Earlier page", elem_id="earlier", min_width=120, interactive=False)
            self.later = gr.Button("Later page", elem_id="later", min_width=120, interactive=False)
            self.undo = gr.Button("Undo the last change", elem_id="undo", min_width=160, interactive=False)
        self.pager = gr.HTML(elem_id="pager")
        self.ticked = gr.JSON([], label="Ticked clips", visible=False)
        gr.Markdown("### The chosen clip")
        self.chosen = gr.Textbox(label="Clip", visible=False)
        self.clip = gr.HTML(elem_id="clip-view", js_on_load=clip_views.WAVE_SCRIPT)
        self.text = gr.Textbox(
            label="Text of the clip",
            info="What is really said; it is kept when you press Save text.",
            lines=3,
            elem_id="clip-text",
            interactive=True,
        )
        self.buttons = _buttons("Save text", "Approve", "Restore", "Merge with the next")
        with gr.Row(elem_classes="beside"):
            self.why = _reason()
            self.buttons |= _buttons("Set aside")
        self.marks = _marks()
        with gr.Row():
            self.play = gr.Button("Play from start to end", elem_id="play-part", min_width=120, interactive=False)
            self.buttons |= _buttons("Trim", "Split")
        self.buttons = {label: self.buttons[label] for label in clip_views.NOTHING_CHOSEN.named}
        self.reasons = gr.HTML(elem_id="clip-reasons")
        with gr.Accordion("What the model reads", open=False):
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

    def open(self, given: Given) -> tuple[Project, Shelved | None]:
        """Read the dataset of the open project."""
        project = self.page.open(given.project)
        return project, self.shelf.look(project.dataset)

    def state(self, given: Given) -> State:
        """Return what tells one look of the table from another."""
        try:
            _, shelved = self.open(given)
        except AmharicTtsError as error:
            return faults.told(error, given.page_language)
        return state_of(given, shelved)

    def listed(self, given: Given, number: int) -> list[Any]:
        """Show one page of clips; what cannot be read is said in its place, because this is asked on every tick."""
        try:
            project, shelved = self.open(given)
        except AmharicTtsError as error:
            told = faults.told(error, given.page_language)
            return _unlisted(told, told)
        if shelved is None:
            empty = say("There are no clips yet. Add recordings above and press Step 1.", given.page_language)
            return _unlisted(state_of(given, None), empty)
        page = shelved.page(given.view, number)
        choices = [(say("Every reason", given.page_language), "")]
        choices += [
            (f"{say(reason, given.page_language)} ({count})", reason) for reason, count in shelved.reasons().items()
        ]
        return [
            state_of(given, shelved),
            clip_views.rows(page, given.clip, project.dataset, given.page_language),
            clip_views.pager(page, given.page_language),
            gr.update(choices=choices),
            page.number,
            gr.update(interactive=page.number > 1),
            gr.update(interactive=page.number < page.pages),
            undoable(project, given.page_language),
        ]

    def edited(self, given: Given, name: str) -> list[Any]:
        """Show the chosen clip with what can be done with it; without one, say so."""
        try:
            project, shelved = self.open(given)
        except AmharicTtsError as error:
            return self._unedited(faults.told(error, given.page_language), given.page_language)
        clip = shelved.contents.clips.get(name) if shelved else None
        if shelved is None or clip is None:
            return self._unedited(say("Choose a clip in the list first.", given.page_language), given.page_language)
        busy = starting.at_work(project) is not None
        found = clip_views.abilities(clip, shelved.contents.clips.values(), busy=busy)
        locks = [gr.update(interactive=not reason) for reason in found.named.values()]
        return [
            name,
            clip_views.details(clip, project.dataset, given.page_language),
            clip.text,
            clip_views.reasons(found, given.page_language),
            *locks,
            gr.update(interactive=bool(clip.audio)),
            *_mark_values(clip),
        ]

    def _unedited(self, sentence: str, language: str) -> list[Any]:
        reasons = clip_views.reasons(clip_views.NOTHING_CHOSEN, language)
        shut = [gr.update(interactive=False)] * (len(self.buttons) + 1 + len(self.marks))
        return ["", note(sentence), "", reasons, *shut]


def _unlisted(state: State, sentence: str) -> list[Any]:
    return [state, note(sentence), "", gr.update(choices=[]), 1, *[gr.update(interactive=False)] * 3]


def undoable(project: Project, language: str) -> Any:  # noqa: ANN401  # gradio's updates have no type
    """Say on the button what it takes back."""
    found = corrections.last(project.dataset)
    if found is None:
        return gr.update(interactive=False, value=say("Undo the last change", language))
    what = say(EDITS.get(str(found["what"]), str(found["what"])), language)
    return gr.update(interactive=True, value=say("Undo: {what}", language, what=what))


def _filters() -> dict[str, Any]:
    made: dict[str, Callable[[], Any]] = {
        "status": lambda: _choice(STATUSES, "kept", "Which clips", "Approved ones were listened to.", "filter-status"),
        "reason": lambda: _choice(
            {"": "Every reason"}, "", "Set aside for", "Choose All clips beside it to see them.", "filter-reason"
        ),
        "search": lambda: gr.Textbox(
            label="Search", info="Words of the text or the recording.", max_lines=1, elem_id="filter-search"
        ),
        "order": lambda: _choice(
            ORDERS, "worst", "Order", "Doubtful: noisy, unsure, or of an odd pace.", "filter-order"
        ),
        "page": lambda: gr.Number(
            1, label="Page", info="Twenty clips each.", precision=0, minimum=1, elem_id="filter-page", interactive=True
        ),
    }
    return side_by_side(made)


def side_by_side(made: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Lay widgets out in a grid, as many in a row as there is room for."""
    widgets = {}
    with gr.Row(elem_classes="fields"):
        for name, make in made.items():
            with gr.Column(min_width=150):
                widgets[name] = make()
    return widgets


def _choice(labels: Mapping[str, str], value: str, title: str, told: str, name: str) -> gr.Dropdown:
    choices = [(label, key) for key, label in labels.items()]
    return gr.Dropdown(choices, value=value, label=title, info=told, interactive=True, elem_id=name)


def _buttons(*labels: str) -> dict[str, gr.Button]:
    """Lay out buttons side by side; they are locked until a clip is chosen."""
    with gr.Row():
        return {
            label: gr.Button(
                label,
                variant="primary" if label == "Save text" else "secondary",
                elem_id=label.lower().replace(" ", "-"),
                interactive=False,
                min_width=120,
            )
            for label in labels
        }


def _reason() -> gr.Dropdown:
    return gr.Dropdown(
        [(reason, reason) for reason in HEARD_REASONS],
        value=HEARD_REASONS[0],
        label="Reason for setting aside",
        info="Choose one, or write another.",
        allow_custom_value=True,
        interactive=True,
        elem_id="aside-reason",
    )


def _marks() -> dict[str, Any]:
    return side_by_side(
        {
            "start": lambda: _mark("start", "Start (s)", "Trim leaves out what is before."),
            "end": lambda: _mark("end", "End (s)", "Trim leaves out what is behind."),
            "at": lambda: _mark("at", "Split at (s)", "Split makes two clips here."),
        }
    )


def _mark(name: str, label: str, told: str) -> gr.Slider:
    return gr.Slider(0, 12, value=0, step=0.01, label=label, info=told, elem_id=f"mark-{name}", interactive=False)


def _mark_values(clip: Clip) -> list[Any]:
    seconds = round(clip.span.seconds, 2)
    can = bool(clip.audio)
    return [gr.update(maximum=seconds, value=value, interactive=can) for value in (0.0, seconds, round(seconds / 2, 2))]


def state_of(given: Given, shelved: Shelved | None) -> State:
    """Return what tells one look of a dataset from another."""
    return [given.project, given.page_language, list(map(list, shelved.signature)) if shelved else None]
