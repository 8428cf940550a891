"""The clip table at work: filter and pages, the choice of a clip, and every change that can be made to it."""

from collections.abc import Callable, Mapping
from typing import Any

import gradio as gr

from utils.amharic import explain
from utils.core.errors import DataError
from utils.core.paths import Project
from utils.dataset import editor
from utils.dataset.editor import Edit
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, RAW_INPUTS, PageContext, notify, show_errors
from utils.ui.tabs import pronunciation
from utils.ui.tabs.data import clip_render, start
from utils.ui.tabs.data.clip_editor import EDITS, Desk, Given
from utils.ui.tabs.data.clip_editor_widgets import HEARD_REASONS, ORDERS, STATUSES

Values = Mapping[str, Any]
Action = Callable[[Project, Values], Edit]


def build_clips(page: PageContext) -> Desk:
    """Lay out table and editor and tie them to the dataset."""
    desk = Desk(page)
    _tie_table(desk)
    _tie_choice(desk)
    _tie_actions(desk)
    _tie_words(desk)
    return desk


def acting(desk: Desk, action: Action) -> Callable[..., list[Any]]:
    """Make the handler that changes clips, says so, and shows what came of it."""

    @show_errors
    def acted(**values: Any) -> list[Any]:  # noqa: ANN401  # of many kinds
        given = Given.of(values)
        project = desk.page.open(given.project)
        start.refuse_while_busy(project)
        done = action(project, {name: "" if value is None else value for name, value in values.items()})
        what = t(EDITS.get(done.name, done.name), given.page_language)
        notify(t("data.done_count", given.page_language, what=what, count=len(done.clips)))
        shown = next((clip.id for clip in done.clips if clip.status == "kept"), given.clip)
        after = given.with_clip(shown)
        return [*desk.listed(after, given.number), *desk.edited(after, shown)]

    return acted


def tie_action(desk: Desk, button: gr.Button, action: Action, more: Mapping[str, Any], name: str, js: str = "") -> None:
    """Change clips when a button is pressed.

    Args:
        desk: Shows what came of it.
        button: The button.
        action: Does it, with the project and what the widgets hold by name.
        more: The widgets that it reads beside those of the table.
        name: Of the event, for programs.
        js: Changes what the widgets hold before it is sent.
    """
    button.click(
        acting(desk, action),
        inputs_kwargs={**desk.given, **more},
        outputs=[*desk.listing, *desk.editor],
        js=js or None,
        api_name=name,
        concurrency_limit=None,
        show_progress_on=desk.pager,
        **RAW_INPUTS,
    )


def _tie_table(desk: Desk) -> None:
    """Show a page when the filter, the page or the dataset changes."""

    def turned(by: int) -> Callable[..., list[Any]]:
        @show_errors
        def turn(**values: Any) -> list[Any]:  # noqa: ANN401  # of many kinds
            given = Given.of(values)
            return desk.listed(given, given.number + by)

        return turn

    @show_errors
    def look(seen: object, **values: Any) -> list[Any]:  # noqa: ANN401  # of many kinds
        """Show the page anew when the dataset has changed since this visitor looked last."""
        given = Given.of(values)
        return [gr.skip()] * len(desk.listing) if desk.state(given) == seen else desk.listed(given, given.number)

    def tie(events: Any, by: int, name: str) -> None:  # noqa: ANN401  # gradio's have no type
        given: dict[str, Any] = {"inputs_kwargs": desk.given, "outputs": desk.listing}
        gr.on(events, turned(by), **given, api_name=name, trigger_mode="always_last", **RAW_INPUTS, **QUIET_EVENT)

    # The input event of a text comes before its value, and a dropdown has one more when it is left.
    changes = [desk.filters["page"].input]
    changes += [desk.filters[name].change for name in ("search", "status", "reason", "order")]
    tie(changes, 0, "clips")
    tie(desk.earlier.click, -1, "earlier_clips")
    tie(desk.later.click, 1, "later_clips")
    given = {"seen": desk.seen, **desk.given}
    gr.on(desk.page.refresh, look, inputs_kwargs=given, outputs=desk.listing, **RAW_INPUTS, **PRIVATE_EVENT)


def _tie_choice(desk: Desk) -> None:
    """Show the clip that is chosen in the table; another project has others."""

    @show_errors
    def choose(event: gr.EventData, *values: Any) -> list[Any]:  # noqa: ANN401  # gradio gives values by place beside an event
        given = Given.of(dict(zip(desk.given, values, strict=True)))
        given = given.with_clip(str(getattr(event, "clip", given.clip)))
        return [*desk.listed(given, given.number), *desk.edited(given, given.clip)]

    @show_errors
    def show(**values: Any) -> list[Any]:  # noqa: ANN401  # of many kinds
        given = Given.of(values)
        return [*desk.listed(given, given.number), *desk.edited(given, given.clip)]

    @show_errors
    def renew(**values: Any) -> list[Any]:  # noqa: ANN401  # of many kinds
        given = Given.of(values)
        return desk.edited(given, given.clip)

    @show_errors
    def forget(**values: Any) -> list[Any]:  # noqa: ANN401  # of many kinds
        return desk.edited(Given.of(values), "")

    outputs = [*desk.listing, *desk.editor]
    desk.table.select(choose, list(desk.given.values()), outputs, **RAW_INPUTS, **PRIVATE_EVENT)
    desk.chosen.submit(show, inputs_kwargs=desk.given, outputs=outputs, api_name="clip", **RAW_INPUTS, **QUIET_EVENT)
    edited: dict[str, Any] = {"inputs_kwargs": desk.given, "outputs": desk.editor, **RAW_INPUTS, **PRIVATE_EVENT}
    desk.page.project.change(forget, **edited)
    gr.on([desk.page.blocks.load, desk.page.language.change], renew, **edited)
    marks = list(desk.marks.values())
    gr.on([mark.change for mark in marks], None, marks, None, js=clip_render.MARKS, api_visibility="private")
    desk.play.click(None, marks[:2], None, js=clip_render.PLAY_PART, api_visibility="private")


def _tie_actions(desk: Desk) -> None:
    """Tie the buttons of the chosen clip."""
    actions: dict[str, tuple[str, Action]] = {
        "data.save_text": (
            "save_text",
            lambda place, of: editor.set_text(place.dataset, of["clip"], of["text"]),
        ),
        "data.approve": ("approve_clip", lambda place, of: editor.approve(place.dataset, [of["clip"]])),
        "data.exclude": (
            "set_clip_aside",
            lambda place, of: editor.exclude(place.dataset, [of["clip"]], str(of["why"])),
        ),
        "data.restore": ("restore_clip", lambda place, of: editor.restore(place.dataset, [of["clip"]])),
        "data.trim": (
            "trim_clip",
            lambda place, of: editor.trim(place.dataset, of["clip"], *times(of, "start", "end")),
        ),
        "data.split": ("split_clip", lambda place, of: editor.split_clip(place.dataset, of["clip"], *times(of, "at"))),
        "data.merge_next": ("merge_clips", lambda place, of: editor.merge_next(place.dataset, of["clip"])),
    }
    more = {"text": desk.text, "why": desk.why, **desk.marks}
    for label, (name, action) in actions.items():
        tie_action(desk, desk.buttons[label], action, more, name)
    tie_action(desk, desk.undo, lambda place, _: editor.undo(place.dataset), {}, "undo_edit")


def _tie_words(desk: Desk) -> None:
    """Keep the explanation in step with the text, and the choices with the language of the page."""

    def explained(text: str, language: str) -> str:
        return pronunciation.show(explain(text), language) if text else ""

    def offered(language: str) -> list[Any]:
        names = (STATUSES, ORDERS, {reason: reason for reason in HEARD_REASONS})
        return [gr.update(choices=[(t(label, language), name) for name, label in one.items()]) for one in names]

    page = desk.page
    gr.on(
        [desk.text.change, page.language.change],
        show_errors(explained),
        [desk.text, page.language],
        desk.explained,
        trigger_mode="always_last",
        **RAW_INPUTS,
        **PRIVATE_EVENT,
    )
    gr.on(
        [page.blocks.load, page.language.change],
        offered,
        page.language,
        [desk.filters["status"], desk.filters["order"], desk.why],
        **PRIVATE_EVENT,
    )


def times(of: Values, *names: str) -> list[float]:
    """Return what some marks stand at; a program may send anything."""
    found = [of[name] for name in names]
    if not all(isinstance(one, int | float) for one in found):
        raise DataError("A time is missing.", hint="Enter it in seconds from the start of the clip.")
    return found


def ticked_names(names: object) -> list[str]:
    """Return the ticked clips; without any, say so."""
    found = [str(name) for name in names] if isinstance(names, list) else []
    if not found:
        raise DataError("No clip is selected.", hint="Select clips in the list first.")
    return found
