"""What the tabs share: the open project, the language, kinds of events, errors in handlers, and confirmations."""

import functools
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import gradio as gr

from utils.core import paths
from utils.core.errors import AmharicTtsError, ConfigError
from utils.ui.i18n import LANGUAGES, describe_error, t
from utils.ui.views import note

P = ParamSpec("P")
R = TypeVar("R")

# For events that come often or without a click: no spinner, no queue.
QUIET_EVENT: dict[str, Any] = {"show_progress": "hidden", "queue": False}
PRIVATE_EVENT: dict[str, Any] = {"api_visibility": "private", **QUIET_EVENT}
# Values are checked below the page, not against the choices of one browser tab.
RAW_INPUTS: dict[str, Any] = {"preprocess": False}
ERROR_SECONDS = 30.0  # long enough to read the hint and follow it

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PageContext:
    """What a tab needs to know of the page."""

    output: Path  # the folder of the projects
    project: gr.Dropdown
    language: gr.Radio
    clock: gr.Timer  # ticks every few seconds while the tab is visible
    blocks: gr.Blocks

    @property
    def refresh(self) -> list[Any]:
        """Return the events after which live parts are refreshed."""
        return [self.blocks.load, self.clock.tick, self.language.change, self.project.change]

    def open(self, name: str) -> paths.Project:
        return paths.project(name, self.output)


def show_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Show an error of a handler on the page, in its language.

    A parameter that is declared as ``str`` gets "" for None, which an empty box may send.
    """
    signature = inspect.signature(function)
    texts = [name for name, parameter in signature.parameters.items() if parameter.annotation is str]

    def bind(*args: P.args, **kwargs: P.kwargs) -> inspect.BoundArguments:
        bound = signature.bind(*args, **kwargs)
        bound.arguments.update({name: "" for name in texts if bound.arguments.get(name, "") is None})
        return bound

    @contextmanager
    def errors_shown(args: Sequence[object], kwargs: Mapping[str, object]) -> Iterator[None]:
        try:
            yield
        except gr.Error:
            raise
        except Exception as error:
            if not isinstance(error, AmharicTtsError):
                logger.exception("A handler of the page failed.")
            given = {**signature.bind_partial(*args).arguments, **kwargs}
            language = given.get("page_language", given.get("language"))
            known = language if isinstance(language, str) and language in LANGUAGES else "en"
            raise page_error(describe_error(error, known)) from error

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        with errors_shown(args, kwargs):
            bound = bind(*args, **kwargs)
            return function(*bound.args, **bound.kwargs)

    @functools.wraps(function)
    def guarded_steps(*args: P.args, **kwargs: P.kwargs) -> Iterator[Any]:
        with errors_shown(args, kwargs):
            bound = bind(*args, **kwargs)
            yield from function(*bound.args, **bound.kwargs)  # type: ignore[misc]  # a generator function

    return guarded_steps if inspect.isgeneratorfunction(function) else guarded  # type: ignore[return-value]


def page_error(sentence: str) -> gr.Error:
    """Return an error for gradio to show; the sentence may quote user input, so it is escaped."""
    return gr.Error(escape(sentence), duration=ERROR_SECONDS, print_exception=False)


def notify(sentence: str) -> None:
    """Show a sentence for a few seconds."""
    gr.Info(escape(sentence), duration=5)


def changed_updates(before: Mapping[str, Any], after: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    """Return what a visitor sees now, and an update for each name; unchanged ones are skipped."""
    fresh = {name: value for name, value in after.items() if before.get(name) != value}
    updates = [gr.update(**value) if isinstance(value, dict) else value for value in fresh.values()]
    by_name = dict(zip(fresh, updates, strict=True))
    return [{**before, **fresh}, *(by_name.get(name, gr.skip()) for name in names)]


def connect_live(
    page: PageContext,
    state: Callable[..., Mapping[str, Any]],
    inputs: Sequence[Any],
    widgets: Mapping[str, Any],
    changes: Sequence[Any] = (),
) -> list[Any]:
    """Refresh widgets with what ``state`` returns for them; a visitor is sent only what differs from the last time.

    Other events that return ``changed_updates`` of this state have the same outputs, which are returned.
    """
    seen, checked_state = gr.State({}), show_errors(state)

    def refresh(before: Mapping[str, Any], *values: object) -> list[Any]:
        return changed_updates(before, checked_state(*values), widgets)

    outputs = [seen, *widgets.values()]
    gr.on([*page.refresh, *changes], refresh, [seen, *inputs], outputs, **RAW_INPUTS, **PRIVATE_EVENT)
    return outputs


@dataclass(frozen=True)
class PanelRequest:
    """What a panel is rendered for: the open project, the language, and the fields as this visitor last sent them."""

    page: "PageContext"
    name: str  # of the project
    language: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def project(self) -> paths.Project:
        return self.page.open(self.name)

    def text(self, name: str) -> str:
        """Return a field as text; a browser may send anything."""
        return str(self.fields.get(name) or "")

    def number(self, name: str) -> float:
        try:
            return float(self.text(name))
        except ValueError:
            raise ConfigError(f"{self.text(name) or 'An empty field'} is not a number.", hint="Enter one.") from None


class Panel:
    """HTML that follows the state on disk, with buttons (``views.button``) that name their action.

    An action is given all fields of the panel, and the values of the widgets in ``reads`` under their names. It may
    return updates of ``outputs`` and, by name, other values of the fields. Actions of a panel run one after the other.
    """

    def __init__(
        self,
        page: PageContext,
        elem_id: str,
        render: Callable[[PanelRequest], str],
        actions: Mapping[str, Callable[[PanelRequest], Mapping[Any, Any] | None]],
        outputs: Sequence[Any] = (),
        reads: Mapping[str, Any] | None = None,
        script: str = "",
        **options: Any,  # noqa: ANN401  # of many kinds
    ) -> None:
        self.page, self.render, self.reads = page, render, reads or {}
        show_progress = options.pop("show_progress", "hidden")
        self.html = gr.HTML(elem_id=elem_id, js_on_load=f"panel(element, trigger, watch);\n{script}", **options)
        self.seen = gr.State({})  # the project, and the fields as this visitor last sent them
        self.inputs: list[Any] = [self.seen, page.project, page.language, *self.reads.values()]
        self.outputs = [self.seen, self.html]

        @show_errors
        def refresh(*values: Any) -> str:  # noqa: ANN401  # those of the inputs
            return str(self.show(self.request(*values))[1])

        @show_errors
        def act(event: gr.EventData, *values: Any) -> list[Any]:  # noqa: ANN401  # those of the inputs
            sent = dict(event._data or {})  # noqa: SLF001  # what the browser sent, under any name
            request = self.request(*values, **sent)
            action = actions.get(str(sent.get("act")))
            updates = (action and action(request)) or {}
            changed = {name: value for name, value in updates.items() if isinstance(name, str)}
            return [*self.show(request, changed), *(updates.get(widget, gr.skip()) for widget in outputs)]

        events = [*page.refresh, *(widget.change for widget in self.reads.values())]
        gr.on(events, refresh, self.inputs, self.html, **RAW_INPUTS, **PRIVATE_EVENT)
        # in the queue, which shows messages and keeps the order
        act_on: dict[str, Any] = {"trigger_mode": "multiple", "api_visibility": "private", **RAW_INPUTS}
        self.html.click(act, self.inputs, [*self.outputs, *outputs], show_progress=show_progress, **act_on)

    def request(
        self, seen: Mapping[str, Any] | None, project: str, language: str, /, *read: object, **sent: object
    ) -> PanelRequest:
        """Return what is asked for by the values of ``inputs``."""
        fields = (seen or {}).get("fields", {}) if (seen or {}).get("project") == project else {}
        return PanelRequest(
            self.page, project, language, {**fields, **dict(zip(self.reads, read, strict=False)), **sent}
        )

    def show(self, request: PanelRequest, changed: Mapping[str, Any] | None = None) -> list[Any]:
        """Return what ``outputs`` are filled with."""
        request = replace(request, fields={**request.fields, **(changed or {})})
        try:
            shown = self.render(request)
        except AmharicTtsError as error:  # runs on every tick, so it is shown here and not as a pop-up
            shown = note(describe_error(error, request.language))
        return [{"project": request.name, "fields": request.fields}, shown]


def toggle(button: gr.Button, panel: gr.Column | gr.HTML, *clocks: gr.Timer) -> None:
    """Show or hide a panel with a click; the clocks tick while it is shown. A hidden panel is not in the document."""
    is_hidden = f"!document.getElementById('{panel.elem_id}')"
    updates = ["{__type__: 'update', visible: hidden}", *["{__type__: 'update', active: hidden}"] * len(clocks)]
    script = f"() => {{ const hidden = {is_hidden}; return [{', '.join(updates)}]; }}"
    button.click(None, None, [panel, *clocks], js=script, api_visibility="private")


class Advanced:
    """The switch that shows what most people leave alone. The browser remembers it for each tab."""

    def __init__(self, page: PageContext, name: str) -> None:
        self.page, self.key = page, f"amharic-advanced-{name}"
        options: dict[str, Any] = {"elem_id": f"{name}-advanced", "container": False, "min_width": 140, "scale": 0}
        self.switch = gr.Checkbox(label=t("common.advanced"), render=False, **options)
        self.sections: list[gr.Column] = []

    def section(self) -> gr.Column:
        """Return a column to lay out in; until the switch is on it is not in the document."""
        self.sections.append(gr.Column(visible=False, elem_classes="advanced"))
        return self.sections[-1]

    def place(self) -> None:
        """Lay out the switch here."""
        self.switch.render()  # type: ignore[no-untyped-call]  # gradio's

    def connect(self) -> None:
        updates = ", ".join(["{__type__: 'update', visible: is_on}"] * len(self.sections))
        show = f"is_on => {{ localStorage.setItem('{self.key}', is_on); return [{updates}]; }}"
        self.switch.change(None, self.switch, self.sections, js=show, api_visibility="private")
        restore = f"() => localStorage.getItem('{self.key}') === 'true'"
        self.page.blocks.load(None, None, self.switch, js=restore, api_visibility="private")
