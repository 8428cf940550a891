"""What the tabs share: the open project, the language, kinds of events, errors in handlers, and confirmations."""

import contextlib
import inspect
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import gradio as gr

from utils.core.errors import AmharicTtsError, explain
from utils.core.wording import speaking
from utils.speech.session import SpeechSession
from utils.studio import paths, projects
from utils.studio.facts import UsageError
from utils.ui.i18n import describe_error, t
from utils.ui.views import note

# For events that come often or without a click: no spinner, no queue.
QUIET_EVENT: dict[str, Any] = {"show_progress": "hidden", "queue": False}
PRIVATE_EVENT: dict[str, Any] = {"api_visibility": "private", **QUIET_EVENT}
# In the queue, which shows messages and keeps the order.
QUEUED_EVENT: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
# Values are checked below the page, not against the choices of one browser tab.
RAW_INPUTS: dict[str, Any] = {"preprocess": False}
FIRST_PROJECT = "default"  # the command line's default too
ERROR_SECONDS = 30.0  # long enough to read the hint and follow it

Updates = Mapping[Any, Any]  # of widgets, and of the fields of a panel by name
Action = Callable[["PanelRequest"], Updates | None]  # of a panel

logger = logging.getLogger(__name__)


class Live:
    """The parts of a tab that follow the state on disk. One event refreshes them all.

    Gradio searches the targets of all events for each widget, and an event of each part would be a request of its own.
    """

    def __init__(self) -> None:
        self.parts: list[tuple[Callable[..., Sequence[Any]], Sequence[Any], Sequence[Any]]] = []
        self.changes: dict[Any, None] = {}  # events of widgets that the parts depend on

    def add(
        self,
        refresh: Callable[..., Sequence[Any]],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        changes: Iterable[Any] = (),
    ) -> None:
        """Add a part: a function of the inputs that returns an update of each output."""
        self.parts.append((refresh, inputs, outputs))
        self.changes |= dict.fromkeys(changes)

    def connect(self, page: "PageContext", events: Sequence[Any]) -> None:
        """Refresh the parts after these events, and after the changes that they depend on."""
        inputs = [*dict.fromkeys(widget for _, read, _ in self.parts for widget in read)]
        outputs = [widget for *_, shown in self.parts for widget in shown]

        def refresh(*values: Any) -> list[Any]:  # noqa: ANN401  # those of the inputs
            given, updates = dict(zip(inputs, values, strict=True)), list[Any]()
            for function, read, shown in self.parts:
                try:
                    updates += function(*(given[widget] for widget in read))
                except Exception as error:  # noqa: BLE001  # the other parts are refreshed all the same
                    gr.Warning(escape(describe_error(log_internal(error))), duration=ERROR_SECONDS)
                    updates += [gr.skip()] * len(shown)
            return updates

        page.on_latest(events, refresh, inputs, outputs)  # a tick never takes a change's place
        if self.changes:
            page.on(partial(gr.on, [*self.changes]), refresh, inputs, outputs, **PRIVATE_EVENT)


@dataclass(frozen=True)
class PageContext:
    """What a tab needs to know of the page."""

    output: Path  # the folder of the projects
    project: gr.Dropdown
    language: gr.Radio
    clock: gr.Timer  # ticks every few seconds while the tab is visible
    blocks: gr.Blocks
    seen: gr.State  # what this visitor has seen and sent, by part of the page; changed in place
    session: SpeechSession  # the model in memory and the queue of requests for it
    live: Live = field(default_factory=Live)

    def look(self, name: str) -> paths.Project:
        """Return a project to show; it may be gone."""
        return paths.project(name, self.output)

    def open(self, name: str) -> paths.Project:
        """Return a project that exists; the first one is made by what is done in it."""
        is_first = name == FIRST_PROJECT and not paths.list_projects(self.output)
        return self.look(name) if is_first else projects.find(name, self.output)

    def on(
        self,
        event: Any,  # noqa: ANN401  # of gradio
        function: Callable[..., Any],
        inputs: Sequence[Any],
        outputs: Any,  # noqa: ANN401  # a widget or several
        **options: Any,  # noqa: ANN401  # of many kinds
    ) -> Any:  # noqa: ANN401  # the event that follows
        """Call a handler after an event, in the language of the visitor; its errors are shown on the page."""
        return event(show_errors(function), [*inputs, self.language], outputs, **RAW_INPUTS | options)

    def on_latest(
        self,
        events: Sequence[Any],
        function: Callable[..., Any],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        **options: Any,  # noqa: ANN401  # of many kinds
    ) -> None:
        """Call a handler after events, never twice at a time, the last time with the newest values.

        Two answers that are on their way at once may arrive in the wrong order. Gradio repeats a postponed event for
        all its handlers, which then wait for each other without end; one that follows another event it repeats alone.
        """
        happened = gr.on(events, None, None, None, js="() => {}", trigger_mode="multiple", api_visibility="private")
        self.on(happened.then, function, inputs, outputs, trigger_mode="always_last", **PRIVATE_EVENT | options)


def show_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Call a handler in the language of its visitor, which is the last value, and show its errors on the page.

    It is given "" for what is empty, which some widgets send as None.
    """

    @wraps(function)
    def guarded(*values: Any) -> Any:  # noqa: ANN401  # those of the inputs
        *given, language = ("" if value is None else value for value in values)
        with errors_in(language):
            return function(*given)

    @wraps(function)
    def stepwise(*values: Any) -> Iterator[Any]:  # noqa: ANN401
        *given, language = ("" if value is None else value for value in values)
        yield from each_step(function(*given), language)

    handler: Any = stepwise if inspect.isgeneratorfunction(function) else guarded
    signature = inspect.signature(function)
    parameters = [*signature.parameters.values()]
    if not any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):  # gradio reads the names
        language = inspect.Parameter("language", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        handler.__signature__ = signature.replace(parameters=[*parameters, language])
    return handler  # type: ignore[no-any-return]


def each_step(steps: Iterator[Any], language: object) -> Iterator[Any]:
    """Take each step in a language: gradio may take each in another thread."""
    end = object()
    while True:
        with errors_in(language):
            step = next(steps, end)
        if step is end:
            return
        yield step


@contextlib.contextmanager
def errors_in(language: object) -> Iterator[None]:
    """Speak a language, also in an error, which the page shows."""
    with speaking(language):
        try:
            yield
        except gr.Error:
            raise
        except Exception as error:
            shown = escape(describe_error(log_internal(error)))  # it may quote user input
            raise gr.Error(shown, duration=ERROR_SECONDS, print_exception=False) from error


def log_internal(error: BaseException) -> BaseException:
    """Log an error unless it is an expected one."""
    if not isinstance(error, AmharicTtsError):
        logger.error("%s", explain(error), exc_info=error)
    return error


def notify(key: str, **values: object) -> None:
    """Show a phrase for a few seconds."""
    gr.Info(escape(t(key, **values)), duration=5)


def connect_live(
    page: PageContext,
    name: str,
    state: Callable[..., Mapping[str, Any]],
    inputs: Sequence[Any],
    widgets: Mapping[str, Any],
    changes: Sequence[Any] = (),
) -> None:
    """Refresh widgets with what ``state`` returns for them; a visitor is sent only what differs from the last time.

    ``name`` is that of this part of the page; ``state`` is given what the visitor has seen, and the inputs.
    """

    def refresh(seen: dict[str, Any], *values: object) -> list[Any]:
        before = seen.setdefault(name, {})
        after = state(before, *values)
        fresh = {key: value for key, value in after.items() if before.get(key) != value}
        before |= fresh
        updates = {key: gr.update(**value) if isinstance(value, dict) else value for key, value in fresh.items()}
        return [updates.get(key, gr.skip()) for key in widgets]

    page.live.add(refresh, [page.seen, *inputs], [*widgets.values()], changes)


@dataclass(frozen=True)
class PanelRequest:
    """What a panel is rendered for: the open project, and the fields as this visitor last sent them."""

    page: PageContext
    name: str  # of the project
    fields: Mapping[str, Any] = field(default_factory=dict)
    seen: dict[Any, Any] = field(default_factory=dict)  # see ``PageContext``
    turn: int = 0  # higher after every action of the panel

    @property
    def project(self) -> paths.Project:
        return self.page.open(self.name)

    def text(self, name: str) -> str:
        """Return a field as text; a browser may send anything."""
        return str(self.fields.get(name) or "")

    def typed_on(self, name: str) -> list[str] | None:
        """Return the texts that a field was edited on: what it was filled with, and what this visitor saved of it."""
        base = self.fields.get(f"{name}Base")
        if not isinstance(base, str):  # a program that saw none
            return None
        saved_on, saved = self.seen.get(self._saved_key(name), (base, base))
        return [base, saved] if saved_on == base else [base]

    def is_edited(self, name: str, stored: str) -> bool:
        return self.text(name).strip() not in {stored, *(self.typed_on(name) or ())}

    def is_overtaken(self, name: str, stored: str) -> bool:
        """Tell whether a field was edited on another text than the one that is stored by now."""
        return stored not in (self.typed_on(name) or [stored]) and self.is_edited(name, stored)

    def note_saved(self, name: str, stored: str) -> None:
        """Remember what was saved of a field: the next edit may be on its way before the answer has arrived."""
        self.seen[self._saved_key(name)] = self.text(f"{name}Base"), stored

    def _saved_key(self, name: str) -> tuple[str, ...]:
        return "saved", name, self.name, self.text("of")  # the clip or run whose text it is

    def number(self, name: str) -> float:
        try:
            return float(self.text(name))
        except ValueError:
            raise UsageError("not_a_number", self.text(name)) from None


class Panel:
    """HTML that follows the state on disk, with buttons (``views.button``) that name their action.

    An action is given all fields of the panel, and the values of the widgets in ``reads`` under their names. It may
    return updates of ``outputs`` and, by name, other values of the fields. Without an action of its name, a button only
    sends the fields. A name that starts with an underscore is the page's own: a browser cannot send its value. Actions
    of a panel run one after the other.
    """

    def __init__(
        self,
        page: PageContext,
        elem_id: str,
        render: Callable[[PanelRequest], str],
        actions: Mapping[str, Action],
        outputs: Sequence[Any] = (),
        reads: Mapping[str, Any] | None = None,
        script: str = "",
        **options: Any,  # noqa: ANN401  # of many kinds
    ) -> None:
        self.page = page
        self.name = elem_id
        self.reads = reads or {}
        self.render_html = render
        self.actions = actions
        self.outputs = outputs
        show_progress = options.pop("show_progress", "hidden")
        script = f"panel(element, trigger, watch, props);\n{script}"
        self.html = gr.HTML(elem_id=elem_id, elem_classes="panel", js_on_load=script, **options)
        self.inputs = [page.seen, page.project, *self.reads.values()]
        page.live.add(self._refresh, self.inputs, [self.html], (widget.change for widget in self.reads.values()))
        if actions:
            page.on(
                self.html.click,
                self._act,
                self.inputs,
                [self.html, *outputs],
                trigger_mode="multiple",
                show_progress=show_progress,
                api_visibility="private",
            )

    def _refresh(self, *values: Any) -> list[str]:  # noqa: ANN401  # those of the inputs
        return [self.render(self.request(*values))]

    def _act(self, event: gr.EventData, seen: Any, project: str, *read: Any) -> list[Any]:  # noqa: ANN401
        data = event._data  # noqa: SLF001  # what the browser sent, under any name
        fields = data if isinstance(data, dict) else {}
        sent = {name: value for name, value in fields.items() if not str(name).startswith("_")}
        request = self.request(seen, project, *read, **sent)
        action = self.actions.get(str(sent.get("act")))
        updates = (action and action(request)) or {}
        changed = {name: value for name, value in updates.items() if isinstance(name, str)}
        return [self.show(request, changed), *(updates.get(widget, gr.skip()) for widget in self.outputs)]

    def request(self, seen: dict[str, Any], project: str, /, *read: object, **sent: object) -> PanelRequest:
        """Return what is asked for by the values of ``inputs``."""
        seen = seen if isinstance(seen, dict) else {}  # a program sends none
        begun = seen.setdefault("begun", time.time_ns() // 1_000_000)  # turns go on when a session is lost
        of, fields, turn = seen.get(self.name, ("", {}, begun))
        fields = {**(fields if of == project else {}), **dict(zip(self.reads, read, strict=False)), **sent}
        return PanelRequest(self.page, project, fields, seen, turn)

    def show(self, request: PanelRequest, changed: Mapping[str, Any]) -> str:
        """Remember the fields, some of them changed, and return the HTML."""
        request = replace(request, fields={**request.fields, **changed}, turn=request.turn + 1)
        request.seen[self.name] = request.name, request.fields, request.turn
        return self.render(request)

    def render(self, request: PanelRequest) -> str:
        """Return the HTML with its turn and project.

        The turn shows the browser that a click has overtaken the answer to a tick; the project, which panels still show
        another one.
        """
        try:
            html = self.render_html(request)
        except Exception as error:  # noqa: BLE001  # runs on every tick, so it is shown here and not as a pop-up
            html = note(describe_error(log_internal(error)))
        return f"{html}<!--{request.turn} {quote(str(request.name))}-->"


def toggle(button: gr.Button, panel: gr.Column | gr.HTML, *clocks: gr.Timer) -> None:
    """Show or hide a panel with a click; the clocks tick while it is shown. A hidden panel is not in the document."""
    is_hidden = f"!document.getElementById('{panel.elem_id}')"
    updates = ["{__type__: 'update', visible: hidden}", *["{__type__: 'update', active: hidden}"] * len(clocks)]
    script = f"() => {{ const hidden = {is_hidden}; return [{', '.join(updates)}]; }}"
    button.click(None, None, [panel, *clocks], js=script, api_visibility="private")


def build_advanced(page: PageContext, name: str) -> None:
    """Lay out the switch of the sheet with what most people leave alone. The browser remembers it for each tab."""
    switch = gr.Checkbox(
        label=t("common.advanced"), elem_id=f"{name}-advanced", container=False, min_width=140, scale=0
    )
    save = f"is_on => localStorage.setItem('amharic-advanced-{name}', is_on)"
    switch.change(None, switch, None, js=save, api_visibility="private")
    restore = f"() => localStorage.getItem('amharic-advanced-{name}') === 'true'"
    page.blocks.load(None, None, switch, js=restore, api_visibility="private")
