"""The page as a whole: its header, its tabs, its languages, and the server that shows it."""

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
from utils.ui import access, gradio_parts, theme, views
from utils.ui.front_page import FrontPage
from utils.ui.i18n import LANGUAGES, Phrase, heading, t
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, PageContext, show_errors
from utils.ui.project_actions import build_desk
from utils.ui.projects import build_picker, project_names, tie_picker
from utils.ui.tabs import text
from utils.ui.tabs.data import tab as data
from utils.ui.tabs.inference import tab as inference
from utils.ui.tabs.system import settings
from utils.ui.tabs.system import tab as system
from utils.ui.tabs.training import tab as training
from utils.workspace import projects

if TYPE_CHECKING:
    from gradio.block_function import BlockFunction

TICK_SECONDS = 2.0
TABS = (data, text, training, inference, system)  # in the order of work

RESTORED = "window.amharicRestored"  # says in the browser that it has remembered

Update = dict[str, Any]


def build(output: Path) -> gr.Blocks:
    """Build the page for the projects in one folder."""
    keep_uploads_in(output)
    blocks = gr.Blocks(
        title=t("common.title", "en"), analytics_enabled=False, delete_cache=(3600, 86_400), fill_width=True
    )
    with blocks:
        page, kept = build_header(output, blocks)
        clocks = [gr.Timer(TICK_SECONDS, active=tab is TABS[0]) for tab in TABS]
        with gr.Tabs(elem_id="tabs") as tabs:
            found = [tab.build(replace(page, clock=clock)) for tab, clock in zip(TABS, clocks, strict=True)]
        tie_memory(page, kept, tabs, found, clocks)
        calm(blocks)
    keep_light(blocks)
    return blocks


def keep_light(blocks: gr.Blocks) -> None:
    """Tie the loading status of all quiet events to one widget.

    At each event the browser renews the status of every widget that was the output of any event before; with hundreds
    of them, a tick of the clock took it seconds.
    """
    anchor = next(block for block in blocks.blocks.values() if isinstance(block, gr.HTML))
    for event in blocks.fns.values():
        if event.show_progress == "hidden":
            event.show_progress_on = [anchor]


def keep_uploads_in(output: Path) -> None:
    """Have gradio keep uploads in a folder of ours instead of one that it shares with every other program."""
    folder = output / paths.UPLOADS.name
    make_folder(folder)
    os.environ["GRADIO_TEMP_DIR"] = str(folder)
    os.environ["GRADIO_EXAMPLES_CACHE"] = str(folder / "examples")


def build_header(output: Path, blocks: gr.Blocks) -> tuple[PageContext, list[gr.BrowserState]]:
    """Lay out what stands above all tabs: project, language, readings; return what the browser remembers too."""
    with gr.Row(elem_id="top"):
        gr.Markdown(heading("common.title", level=1))
        project, sample = build_picker(output)
        language = gr.Radio(
            [(native, code) for code, native in LANGUAGES.items()],
            value="en",
            label=t("common.interface_language"),
            elem_id="language",
        )
    kept = remembered(project, language)
    readings = gr.HTML(elem_id="readings")
    page = PageContext(output, project, language, gr.Timer(TICK_SECONDS), blocks)
    build_desk(page)
    tie_readings(page, readings)
    tie_picker(page, sample)
    return page, kept


def calm(blocks: gr.Blocks) -> None:
    """Keep slow answers from asking for each other without end.

    What gradio 6 keeps for later ("always_last") it then sends to everything that hangs on the same event, so only one
    answer to an event may wait. A tick that comes too early goes by, since another one follows; the other answers to
    one event are asked for at once.
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


def remembered(project: gr.Dropdown, language: gr.Radio) -> list[gr.BrowserState]:
    """Let the browser remember project, language and tab.

    These events come before all others: a browser does what hangs on one choice one after the other, and after a choice
    of the language that is the whole page.
    """
    kept = [memory("project"), memory("language"), memory("tab")]
    project.change(None, project, kept[0], js="project => project")
    language.change(None, language, None, js="language => { document.documentElement.lang = language; }")
    language.change(None, language, kept[1], js="language => language")
    return kept


def tie_readings(page: PageContext, readings: gr.HTML) -> None:
    """Show processor, memory, disk and graphics card on every tick."""

    @show_errors
    def read(language: str) -> str:
        return views.readings(monitor.read_once(page.output), language)

    gr.on(page.refresh, read, page.language, readings, api_name="readings", **QUIET_EVENT)


def tie_memory(
    page: PageContext, kept: list[gr.BrowserState], tabs: gr.Tabs, found: Sequence[gr.Tab], clocks: Sequence[gr.Timer]
) -> None:
    """Open what the browser remembers, and speak the language that is chosen.

    Only the clock of the tab in sight ticks: what a browser does with the answers of all tabs takes it a second.
    """
    translated = phrases_of(page.blocks)
    widgets = list(translated)

    def speak(language: str) -> list[Update]:
        return [
            gr.update() | {name: phrase.in_language(language) for name, phrase in phrases.items()}
            for phrases in translated.values()
        ]

    def restore(project: str, language: str, tab: str) -> list[Any]:
        names = project_names(page.output)
        opened = gr.update(choices=names, value=project if project in names else names[0])
        known = tab in {
            one.id for one in found[1:]
        }  # the first one is in sight; a quick visitor may have left it by now
        shown = [gr.update(selected=tab), *ticking(tab)] if known else [gr.skip()] * (1 + len(clocks))
        language = language if language in LANGUAGES else settings.read(page.output).language
        if language == page.language.value:
            return [opened, *shown, *[gr.skip()] * (1 + len(widgets))]  # a quick visitor may have chosen by now
        return [opened, *shown, language, *speak(language)]

    def ticking(tab: object) -> list[Update]:
        return [gr.update(active=one.id == tab) for one in found]

    page.blocks.load(restore, kept, [page.project, tabs, *clocks, page.language, *widgets], **PRIVATE_EVENT).then(
        None, js=f"() => {{ {RESTORED} = true; }}"
    )
    page.language.input(speak, page.language, widgets, **PRIVATE_EVENT)
    for tab in found:
        # the first tab says so too when the page is made, and must not be taken for a choice then
        tab.select(None, kept[2], kept[2], js=f"before => {RESTORED} ? '{tab.id}' : before")
        tab.select(partial(ticking, tab.id), None, list(clocks), **PRIVATE_EVENT)


def memory(name: str) -> gr.BrowserState:
    """Keep one word in the browser; the key hides nothing, it only has to outlive the page."""
    return gr.BrowserState("", storage_key=f"amharic-{name}", secret="open")  # noqa: S106


def phrases_of(blocks: gr.Blocks) -> dict[Block, dict[str, Phrase]]:
    """Return the phrases with which each widget was built, by the name of its parameter."""
    found = {
        block: {name: value for name, value in block.constructor_args.items() if isinstance(value, Phrase)}
        for block in blocks.blocks.values()
    }
    return {block: phrases for block, phrases in found.items() if phrases}


@dataclass(frozen=True)
class Address:
    """Where the page is, once it is up."""

    url: str
    port: int
    shared: str = ""


def tidy(output: Path) -> None:
    """Remove what was deleted long enough ago."""
    projects.empty_trash(output, days=settings.read(output).kept_days)


def launch(
    output: Path, *, host: str, port: int, share: bool, who: access.Credentials | None
) -> tuple[gr.Blocks, Address]:
    """Show the page and return at once."""
    output = output.resolve()  # the children work in another folder
    local = is_loopback(host) and not share
    os.environ["NO_PROXY"] = ",".join(filter(None, [os.environ.get("NO_PROXY"), "127.0.0.1", "localhost"]))
    blocks = build(output)
    threading.Thread(target=tidy, args=[output], name="tidy", daemon=True).start()
    port = access.free_port(host, port)
    front = [Middleware(access.Doorkeeper, local=local), Middleware(FrontPage, everybody=not who)]
    _, url, shared = blocks.launch(
        server_name=host,
        server_port=port,
        share=share,
        auth=(who.user, who.password) if who else None,
        allowed_paths=[str(output)],
        app_kwargs={"middleware": front},
        theme=theme.theme(),
        css=theme.CSS,
        head=gradio_parts.head(),
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
