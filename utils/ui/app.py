"""The page as a whole: its header, its tabs, its languages, and the server that shows it."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.blocks import Block
from starlette.middleware import Middleware

from utils import monitor, paths
from utils.errors import AmharicTtsError
from utils.storage import make_folder
from utils.ui import access, theme, views
from utils.ui.page import ERROR_SECONDS, QUIET, Page, handler, tell
from utils.ui.tabs import system, text
from utils.ui.words import LANGUAGES, amharic, say

TITLE = "Amharic voices"
FIRST_PROJECT = "default"  # what the command line calls it too
TICK_SECONDS = 2.0
TABS = (text, system)  # in the order of work

Update = dict[str, Any]


def build(output: Path) -> gr.Blocks:
    """Build the page for the projects in one folder."""
    keep_uploads_in(output)
    blocks = gr.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(3600, 86_400), fill_width=True)
    with blocks:
        page = build_header(output, blocks)
        with gr.Tabs(elem_id="tabs") as tabs:
            found = [tab.build(page) for tab in TABS]
        tie_memory(page, tabs, found)
    return blocks


def keep_uploads_in(output: Path) -> None:
    """Have gradio keep uploads in a folder of ours instead of one that it shares with every other program."""
    folder = output / ".uploads"
    make_folder(folder)
    os.environ["GRADIO_TEMP_DIR"] = str(folder)
    os.environ["GRADIO_EXAMPLES_CACHE"] = str(folder / "examples")


def build_header(output: Path, blocks: gr.Blocks) -> Page:
    """Lay out what stands above all tabs: project, language, readings."""
    names = project_names(output)
    with gr.Row(elem_id="top"):
        gr.Markdown(f"# {TITLE}")
        project = gr.Dropdown(
            names,
            value=names[0],
            label="Project",
            info="Choose one, or type a new name.",
            allow_custom_value=True,
            interactive=True,
            elem_id="project",
        )
        language = gr.Radio(
            [(native, code) for code, native in LANGUAGES.items()],
            value="en",
            label="Language of the page",
            elem_id="language",
        )
    readings = gr.HTML(elem_id="readings")
    page = Page(output, project, language, gr.Timer(TICK_SECONDS), blocks)
    tie_readings(page, readings)
    tie_projects(page)
    return page


def project_names(output: Path) -> list[str]:
    """List the projects; an empty folder offers the name that the first run will create."""
    return paths.list_projects(output) or [FIRST_PROJECT]


def open_project(output: Path, name: str) -> tuple[str, bool]:
    """Return the project's name as its folder has it, and whether it had to be made."""
    root = paths.project(name, output).root
    is_new = not root.is_dir()
    make_folder(root)
    return root.name, is_new


def tie_projects(page: Page) -> None:
    """Open the project that a person chooses; a new name makes a new one, a bad name is refused."""

    @handler
    def choose(name: str, language: str) -> Update:
        try:
            opened, is_new = open_project(page.output, name)
        except AmharicTtsError as error:
            gr.Warning(escape(str(error)), duration=ERROR_SECONDS)
            return gr.update()  # what was typed stays; no other project is opened in its place
        if is_new:
            tell(say("Project {name} is made.", language, name=opened))
        return gr.update(choices=project_names(page.output), value=opened)

    page.project.input(choose, [page.project, page.language], page.project, api_name="open_project")
    page.project.focus(
        lambda: gr.update(choices=project_names(page.output)),
        None,
        page.project,
        api_visibility="private",
        **QUIET,
    )


def tie_readings(page: Page, readings: gr.HTML) -> None:
    """Show processor, memory, disk and graphics card on every tick."""

    @handler
    def read(language: str) -> str:
        return views.readings(monitor.read_once(page.output), language)

    gr.on(page.refresh, read, page.language, readings, api_name="readings", **QUIET)


def tie_memory(page: Page, tabs: gr.Tabs, found: Sequence[gr.Tab]) -> None:
    """Let the browser remember project, language and tab, and speak the language that is chosen."""
    kept = [memory("project"), memory("language"), memory("tab")]
    spoken = list(translatable(page.blocks))
    widgets = [one.block for one in spoken]

    def speak(language: str) -> list[Update]:
        return [one.update(language) for one in spoken]

    def restore(project: str, language: str, tab: str) -> list[Any]:
        names = project_names(page.output)
        opened = gr.update(choices=names, value=project if project in names else names[0])
        selected = gr.update(selected=tab) if tab else gr.skip()
        if language not in LANGUAGES or language == page.language.value:
            return [opened, selected, *[gr.skip()] * (1 + len(spoken))]  # a quick visitor may have chosen by now
        return [opened, selected, language, *speak(language)]

    private: dict[str, Any] = {"api_visibility": "private", **QUIET}
    page.blocks.load(restore, kept, [page.project, tabs, page.language, *widgets], **private)
    page.language.input(speak, page.language, widgets, **private)
    page.language.change(None, page.language, None, js="language => { document.documentElement.lang = language; }")
    page.project.change(None, page.project, kept[0], js="project => project")
    page.language.change(None, page.language, kept[1], js="language => language")
    for tab in found:
        tab.select(None, None, kept[2], js=f"() => '{tab.id}'")


def memory(name: str) -> gr.BrowserState:
    """Keep one word in the browser; the key hides nothing, it only has to outlive the page."""
    return gr.BrowserState("", storage_key=f"amharic-{name}", secret="open")  # noqa: S106


@dataclass(frozen=True)
class Spoken:
    """A widget with the words of it that can be said in another language."""

    block: Block
    words: dict[str, str]

    def update(self, language: str) -> Update:
        """Return the widget's words in a language."""
        return gr.update() | {place: translated(text, language) for place, text in self.words.items()}


def translatable(blocks: gr.Blocks) -> Iterator[Spoken]:
    """Find every widget that shows words from the table."""
    for block in list(blocks.blocks.values()):
        places = ["label", "info", "placeholder", *(["value"] if isinstance(block, gr.Button | gr.Markdown) else [])]
        texts = {place: getattr(block, place, None) for place in places}
        words = {place: text for place, text in texts.items() if isinstance(text, str) and split(text)[1] in amharic()}
        if words:
            yield Spoken(block, words)


def translated(text: str, language: str) -> str:
    """Translate the words of a text and leave its heading mark and its bounds as they are."""
    mark, words, bounds = split(text)
    return mark + say(words, language) + bounds


def split(text: str) -> tuple[str, str, str]:
    """Split '## Title' and 'Sentence. [≥ 1]' into mark, words and bounds."""
    words = text.lstrip("# ")
    mark = text.removesuffix(words)
    words, bracket, limits = words.partition(" [")
    return mark, words, bracket + limits


@dataclass(frozen=True)
class Address:
    """Where the page is, once it is up."""

    url: str
    port: int
    shared: str = ""


def launch(
    output: Path, *, host: str, port: int, share: bool, who: access.Credentials | None
) -> tuple[gr.Blocks, Address]:
    """Show the page and return at once."""
    output = output.resolve()  # the children work in another folder
    local = access.is_loopback(host) and not share
    os.environ["NO_PROXY"] = ",".join(filter(None, [os.environ.get("NO_PROXY"), "127.0.0.1", "localhost"]))
    blocks = build(output)
    port = access.free_port(host, port)
    _, url, shared = blocks.launch(
        server_name=host,
        server_port=port,
        share=share,
        auth=(who.user, who.password) if who else None,
        allowed_paths=[str(output)],
        app_kwargs={"middleware": [Middleware(access.Doorkeeper, local=local)]},
        theme=theme.theme(),
        css=theme.CSS,
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
