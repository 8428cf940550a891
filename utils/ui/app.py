"""The page: header, tabs, languages, and the server that shows it."""

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr
from gradio.blocks import Block
from starlette.middleware import Middleware

from utils.core import paths
from utils.core.addresses import is_loopback
from utils.core.storage import make_folder
from utils.runs import monitor
from utils.ui import access, theme, views
from utils.ui.gradio_patches import FrontPage
from utils.ui.i18n import LANGUAGES, Phrase, heading, t
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, PageContext, show_errors
from utils.ui.projects import build_panel, build_picker, connect_picker, project_names
from utils.ui.tabs import pronunciation
from utils.ui.tabs.data import tab as data
from utils.ui.tabs.inference import tab as inference
from utils.ui.tabs.system import settings
from utils.ui.tabs.system import tab as system
from utils.ui.tabs.training import tab as training
from utils.workspace import projects

if TYPE_CHECKING:
    from gradio.block_function import BlockFunction

TICK_SECONDS = 2.0
TABS = (data, pronunciation, training, inference, system)  # in the order of work

RESTORED = "window.amharicRestored"  # set in the browser once project, language and tab are restored

Update = dict[str, Any]


def build(output: Path) -> gr.Blocks:
    """Build the page for the projects in a folder."""
    set_upload_folder(output)
    title = t("common.title", "en")
    blocks = gr.Blocks(title=title, analytics_enabled=False, delete_cache=(3600, 86_400), fill_width=True)
    with blocks:
        page, saved = build_header(output, blocks)
        clocks = [gr.Timer(TICK_SECONDS, active=tab is TABS[0]) for tab in TABS]
        with gr.Tabs(elem_id="tabs") as tabs:
            built = [tab.build(replace(page, clock=clock)) for tab, clock in zip(TABS, clocks, strict=True)]
        connect_state(page, saved, tabs, built, clocks)
        limit_waiting_events(blocks)
    share_status_widget(blocks)
    return blocks


def set_upload_folder(output: Path) -> None:
    """Make gradio keep uploads in the output folder, not in one that all gradio programs share."""
    folder = output / paths.UPLOADS.name
    make_folder(folder)
    os.environ["GRADIO_TEMP_DIR"] = str(folder)
    os.environ["GRADIO_EXAMPLES_CACHE"] = str(folder / "examples")


def share_status_widget(blocks: gr.Blocks) -> None:
    """Give all quiet events one widget for their loading status.

    After each event the browser renews the status of every widget that was ever an output. With hundreds of them a
    tick of the clock takes seconds.
    """
    widget = next(block for block in blocks.blocks.values() if isinstance(block, gr.HTML))
    for event in blocks.fns.values():
        if event.show_progress == "hidden":
            event.show_progress_on = [widget]


def limit_waiting_events(blocks: gr.Blocks) -> None:
    """Keep slow handlers from triggering each other without end.

    Gradio 6 sends a postponed event ("always_last") to every handler of its trigger, so only one handler of a trigger
    may postpone. A tick that comes too early is skipped; the other handlers of a trigger run at once.
    """
    clocks = {number for number, block in blocks.blocks.items() if isinstance(block, gr.Timer)}
    waiting: dict[tuple[int | None, str], list[BlockFunction]] = {}
    for event in blocks.fns.values():
        if any(target in clocks for target, _ in event.targets):
            event.trigger_mode = "once"
        if event.fn and event.trigger_mode == "always_last":
            for trigger in event.targets:
                waiting.setdefault(trigger, []).append(event)
    for (_, name), events in waiting.items():
        for event in events if len(events) > 1 and name != "load" else ():
            event.trigger_mode = "multiple"


def build_header(output: Path, blocks: gr.Blocks) -> tuple[PageContext, list[gr.BrowserState]]:
    """Lay out project, language and system readings; return them with what the browser saves."""
    with gr.Row(elem_id="top"):
        gr.Markdown(heading("common.title", level=1))
        project, sample = build_picker(output)
        language = gr.Radio(
            [(native, code) for code, native in LANGUAGES.items()],
            value="en",
            label=t("common.interface_language"),
            elem_id="language",
        )
    saved = save_choices(project, language)
    readings = gr.HTML(elem_id="readings")
    page = PageContext(output, project, language, gr.Timer(TICK_SECONDS), blocks)
    build_panel(page)
    connect_readings(page, readings)
    connect_picker(page, sample)
    return page, saved


def save_choices(project: gr.Dropdown, language: gr.Radio) -> list[gr.BrowserState]:
    """Save project, language and tab in the browser.

    These events must come first: a browser handles the events of one widget in order, and a change of language
    updates the whole page.
    """
    saved = [browser_state("project"), browser_state("language"), browser_state("tab")]
    project.change(None, project, saved[0], js="project => project")
    language.change(None, language, None, js="language => { document.documentElement.lang = language; }")
    language.change(None, language, saved[1], js="language => language")
    return saved


def browser_state(name: str) -> gr.BrowserState:
    """Return a value that the browser saves; the key is fixed so that it outlives the page, and hides nothing."""
    return gr.BrowserState("", storage_key=f"amharic-{name}", secret="open")  # noqa: S106


def connect_readings(page: PageContext, readings: gr.HTML) -> None:
    """Show processor, memory, disk and GPU on every tick."""

    @show_errors
    def read(language: str) -> str:
        return views.readings(monitor.read_once(page.output), language)

    gr.on(page.refresh, read, page.language, readings, api_name="readings", **QUIET_EVENT)


def connect_state(
    page: PageContext, saved: list[gr.BrowserState], tabs: gr.Tabs, built: Sequence[gr.Tab], clocks: Sequence[gr.Timer]
) -> None:
    """Restore what the browser saved, and translate the page when the language changes.

    Only the clock of the visible tab ticks: updating all tabs takes the browser a second.
    """
    phrases = phrases_of(page.blocks)
    widgets = list(phrases)

    def translate(language: str) -> list[Update]:
        return [
            gr.update() | {name: phrase.in_language(language) for name, phrase in texts.items()}
            for texts in phrases.values()
        ]

    def restore(project: str, language: str, tab: str) -> list[Any]:
        names = project_names(page.output)
        opened = gr.update(choices=names, value=project if project in names else names[0])
        # The first tab is visible already; a quick visitor may have left it by now.
        is_other = tab in {item.id for item in built[1:]}
        shown = [gr.update(selected=tab), *ticking(tab)] if is_other else [gr.skip()] * (1 + len(clocks))
        language = language if language in LANGUAGES else settings.read(page.output).language
        if language == page.language.value:
            return [opened, *shown, *[gr.skip()] * (1 + len(widgets))]
        return [opened, *shown, language, *translate(language)]

    def ticking(tab: object) -> list[Update]:
        return [gr.update(active=item.id == tab) for item in built]

    page.blocks.load(restore, saved, [page.project, tabs, *clocks, page.language, *widgets], **PRIVATE_EVENT).then(
        None, js=f"() => {{ {RESTORED} = true; }}"
    )
    page.language.input(translate, page.language, widgets, **PRIVATE_EVENT)
    for tab in built:
        # The first tab is also selected when the page is built, which is no choice of the visitor.
        tab.select(None, saved[2], saved[2], js=f"before => {RESTORED} ? '{tab.id}' : before")
        tab.select(partial(ticking, tab.id), None, list(clocks), **PRIVATE_EVENT)


def phrases_of(blocks: gr.Blocks) -> dict[Block, dict[str, Phrase]]:
    """Return the phrases with which each widget was built, by the name of its parameter."""
    found = {
        block: {name: value for name, value in block.constructor_args.items() if isinstance(value, Phrase)}
        for block in blocks.blocks.values()
    }
    return {block: phrases for block, phrases in found.items() if phrases}


@dataclass(frozen=True)
class Address:
    """Where the page is served."""

    url: str
    port: int
    shared: str = ""


def launch(
    output: Path, *, host: str, port: int, share: bool, who: access.Credentials | None
) -> tuple[gr.Blocks, Address]:
    """Serve the page and return at once."""
    output = output.resolve()  # child processes work in another folder
    local = is_loopback(host) and not share
    os.environ["NO_PROXY"] = ",".join(filter(None, [os.environ.get("NO_PROXY"), "127.0.0.1", "localhost"]))
    blocks = build(output)
    threading.Thread(target=empty_trash, args=[output], name="empty-trash", daemon=True).start()
    port = access.free_port(host, port)
    middleware = [Middleware(access.RequestGuard, local=local), Middleware(FrontPage, public=not who)]
    _, url, shared = blocks.launch(
        server_name=host,
        server_port=port,
        share=share,
        auth=(who.user, who.password) if who else None,
        allowed_paths=[str(output)],
        app_kwargs={"middleware": middleware},
        theme=theme.theme(),
        css=theme.CSS,
        head=theme.head(),
        footer_links=[],
        run_history=False,
        enable_monitoring=False,
        ssr_mode=False,
        mcp_server=False,
        pwa=False,
        quiet=True,
        prevent_thread_lock=True,
    )
    return blocks, Address(url.rstrip("/"), port, shared or "")


def empty_trash(output: Path) -> None:
    """Remove projects that were deleted long enough ago."""
    projects.empty_trash(output, days=settings.read(output).kept_days)
