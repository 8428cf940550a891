"""The page: header, tabs, languages, and the server that shows it."""

import json
import os
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import gradio as gr
from fastapi import FastAPI
from gradio import networking
from starlette.staticfiles import StaticFiles

from utils.core import monitor
from utils.core.addresses import is_loopback
from utils.core.errors import DownloadError
from utils.core.storage import make_folder
from utils.core.wording import LANGUAGES
from utils.core.wording import rows as phrases
from utils.server.connections import BackgroundServer, bind, server_config, url
from utils.server.origins import Site, trusted_networks
from utils.server.page import Credentials, PageGuard, page_token
from utils.studio import page_settings, paths, runs, uploads
from utils.studio.facts import UploadError
from utils.ui import step_bar, views
from utils.ui.checked_blocks import CheckedBlocks
from utils.ui.html import ASSETS, html, styles
from utils.ui.i18n import Choices, Phrase, heading, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, Live, PageContext, Panel, PanelRequest, toggle
from utils.ui.projects import build_picker, build_project_panel, choose_project, empty_trash, gone
from utils.ui.tabs.data import tab as data
from utils.ui.tabs.inference import tab as inference
from utils.ui.tabs.system import tab as system
from utils.ui.tabs.training import tab as training
from utils.ui.theme import theme

TICK_SECONDS = 2.0
PORTS_TRIED = 100
NAMES_OF_ALL = {"0.0.0.0": "localhost", "::": "localhost"}  # noqa: S104  # a name of all addresses is shown
TABS = (data, training, inference)  # in the order of work
# The open tab: a visitor may choose another one before the server has answered.
# The first tab is also selected when the page is built, which is no choice.
SAVE_TAB = """() => {
  openStep("%s");
  window.amharicTabChosen ||= %s;
  if (window.amharicTabChosen) keep("tab", "%s");
  return [%s].map((active) => ({__type__: "update", active}));
}"""
RESTORE_TAB = """() => {
  const saved = kept("tab");
  return {__type__: "update", ...(!window.amharicTabChosen && %s.includes(saved) && {selected: saved})};
}"""
# What somebody has chosen already counts more than what was saved.
RESTORE_CHOICES = """() => ["project", "language"].map(
  (name) => window.amharicChosen?.[name] ?? kept(name) ?? "")"""
KEEP_CHOICES = """(...values) => {
  const chosen = ["project", "language"].map((name, index) => window.amharicChosen?.[name] ?? values[index]);
  openProject(chosen[0]);
  return chosen;
}"""
CHOOSE = "value => { (window.amharicChosen ??= {}).%s = value; }"

GRADIO_WORDS = {  # that it shows itself, and what stands there instead
    "Drop File Here": "gradio.drop_file",
    "Drop Audio Here": "gradio.drop_audio",
    "- or -": "gradio.or",
    "Click to Upload": "gradio.click_upload",
    "Error": "gradio.error",
    "Warning": "gradio.warning",
    "Info": "gradio.info",
}

Update = dict[str, Any]


def build(output: Path) -> gr.Blocks:
    uploaded = output / paths.UPLOADS.name  # not in the folder that all gradio programs share
    make_folder(uploaded)
    os.environ["GRADIO_TEMP_DIR"] = str(uploaded)
    os.environ["GRADIO_EXAMPLES_CACHE"] = str(uploaded / "examples")
    title = t("common.title")
    blocks = CheckedBlocks(title=title, analytics_enabled=False, delete_cache=(3600, 86_400), fill_width=True)
    with blocks:
        page, open_system = build_header(output, blocks)
        clocks = [gr.Timer(TICK_SECONDS, active=tab is TABS[0]) for tab in TABS]
        with gr.Tabs(elem_id="tabs") as tabs:
            built = []
            for tab, clock in zip(TABS, clocks, strict=True):
                part = replace(page, clock=clock, live=Live())
                built.append(tab.build(part))
                connect_live_parts(part, built[-1].select)  # the first tab is selected when the page is built
        build_drawer(page, open_system)
        connect_tabs(blocks, tabs, built, clocks)
        connect_state(page)
        limit_waiting_events(blocks)
    return blocks


def limit_waiting_events(blocks: gr.Blocks) -> None:
    """Keep slow handlers from triggering each other without end.

    Gradio 6 sends a postponed event ("always_last") to every handler of its trigger, so only one handler of a trigger
    may postpone, or those that follow another event (``on_latest``). A tick that comes too early waits for the
    answer to the one before; the other handlers of a trigger run at once.
    """
    clocks = {number for number, block in blocks.blocks.items() if isinstance(block, gr.Timer)}
    events = [*blocks.fns.values()]
    for event in events:
        if any(target in clocks for target, _ in event.targets):
            event.trigger_mode = "once"
        if event.show_progress == "hidden":
            event.show_progress_on = []  # else each event renews the hidden status of every output ever updated
    waiting = [event for event in events if event.fn and event.trigger_mode == "always_last"]
    heard = Counter(trigger for event in waiting for trigger in event.targets if trigger[1] not in {"load", "then"})
    for event in waiting:
        if any(heard[trigger] > 1 for trigger in event.targets):
            event.trigger_mode = "multiple"


def build_header(output: Path, blocks: gr.Blocks) -> tuple[PageContext, gr.Button]:
    """Lay out the bar: project, steps, status and settings; return the page, and the button of the settings."""
    language = gr.Radio(  # shown in the head of the settings; a hidden one would not hear what the browser saved
        [(native, code) for code, native in LANGUAGES.items()],
        value="en",
        label=t("common.interface_language"),
        elem_id="language",
    )
    with gr.Row(elem_id="bar"):
        gr.Markdown(heading("common.title", level=1), elem_id="brand")
        project, manage = build_picker(output)
        save_choices(project, language)
        clock = gr.Timer(TICK_SECONDS)
        page = PageContext(output, project, language, clock, blocks, gr.State({}), inference.new_session(output))
        build_steps(page)
        readings = gr.HTML(elem_id="readings")
        open_system = gr.Button(t("common.settings"), elem_id="open-system", size="sm", min_width=36, scale=0)
    build_project_panel(page, manage)
    page.live.add(lambda: [views.readings(monitor.read_once(output))], [], [readings])
    connect_live_parts(page, blocks.load, manage.click)
    return page, open_system


def save_choices(project: gr.Dropdown, language: gr.Radio) -> None:
    """Let the browser save the project and the language.

    These events must come first: a browser handles the events of one widget in order, and a change of language updates
    the whole page.
    """
    project.input(None, project, None, js=CHOOSE % "project")
    language.input(None, language, None, js=CHOOSE % "language")
    save = "project => { openProject(project); keep('project', project); }"
    project.change(None, project, None, js=save)
    save = "language => { setLanguage(language); keep('language', language); }"
    language.change(None, language, None, js=save)


def build_steps(page: PageContext) -> None:
    def show(request: PanelRequest) -> str:
        if message := gone(request.name, request.page.output):
            return message
        runs.watch_queue(request.project)
        return step_bar.render(request.project)

    script = "element.refreshed = () => openStep();"
    Panel(page, "steps", show, {}, script=script, value=step_bar.render(None))


def connect_live_parts(page: PageContext, *opened: Any) -> None:  # noqa: ANN401  # events of gradio
    """Refresh the live parts of a tab when it is opened, while it is, and after a change of language or project."""
    page.live.connect(page, [*opened, page.clock.tick, page.language.change, page.project.change])


def build_drawer(page: PageContext, button: gr.Button) -> None:
    """Lay out what concerns this computer rather than the open project; hidden, it is not in the document."""
    clock = gr.Timer(TICK_SECONDS, active=False)
    with gr.Column(visible=False, elem_id="drawer") as drawer:
        with gr.Row():
            gr.Markdown(heading("common.settings"))
            close = gr.Button(t("common.close"), elem_id="close-system", size="sm", min_width=100, scale=0)
        page = replace(page, clock=clock, live=Live())
        system.build(page)
    connect_live_parts(page, button.click)
    for clicked in (button, close):
        toggle(clicked, drawer, clock)


def connect_tabs(blocks: gr.Blocks, tabs: gr.Tabs, built: Sequence[gr.Tab], clocks: Sequence[gr.Timer]) -> None:
    """Open the tab that the browser saved.

    Only the clock of the visible tab ticks: updating all tabs takes the browser a second.
    """
    first, *others = (tab.id for tab in built)
    blocks.load(None, None, tabs, js=RESTORE_TAB % json.dumps(others))
    for tab in built:
        # in the browser: two answers of the server could arrive in the wrong order and stop the clock of the open tab
        ticking = ", ".join(json.dumps(other is tab) for other in built)
        tab.select(None, None, list(clocks), js=SAVE_TAB % (tab.id, json.dumps(tab.id != first), tab.id, ticking))


def translated(blocks: gr.Blocks) -> dict[Any, dict[str, Phrase | Choices]]:
    """Return the texts of the widgets that have any, by the name of the property."""
    texts = {}
    for block in blocks.blocks.values():
        found = {name: text for name, text in block.constructor_args.items() if isinstance(text, Phrase | Choices)}
        if found:
            texts[block] = found
    return texts


def connect_state(page: PageContext) -> None:
    """Restore what the browser saved, and translate the page when the language changes."""
    texts = translated(page.blocks)

    def translate() -> list[Update]:
        return [gr.update() | {name: text.write() for name, text in found.items()} for found in texts.values()]

    def restore(project: str, language: str) -> tuple[Update, str]:
        if language not in [*LANGUAGES]:  # the browser may have saved anything
            language = page_settings.read(page.output).language
        return choose_project(page.output, project), language

    choices = [page.project, page.language]
    restored = page.blocks.load(restore, choices, choices, js=RESTORE_CHOICES, **RAW_INPUTS, **PRIVATE_EVENT)
    # somebody may have chosen others before the server answered
    restored.then(None, choices, choices, js=KEEP_CHOICES)
    page.on_latest([page.language.change], translate, [], [*texts])


def launch(
    output: Path, *, host: str, port: int, share: bool, who: Credentials | None, proxies: Sequence[str] = ()
) -> "ServedPage":
    """Serve the page and return at once."""
    output = output.resolve()  # child processes work in another folder
    site = Site(is_loopback(host) and not proxies, trusted_networks(proxies))
    blocks = build(output)
    threading.Thread(target=lambda: empty_trash(output), name="empty-trash", daemon=True).start()
    listener = bind(host, port, PORTS_TRIED)
    port = listener.getsockname()[1]
    guard = mount(blocks, output, host, port, site, who)
    server = BackgroundServer(server_config(guard))
    page = ServedPage(server, port, url(NAMES_OF_ALL.get(host, host), port), guard.token)
    server.start(listener)
    if share:
        try:
            site.tunnel = open_tunnel(blocks.share_token, host, port)
        except DownloadError:
            page.close()
            raise
        page.public_url = site.tunnel.geturl()
    return page


def mount(blocks: gr.Blocks, output: Path, host: str, port: int, site: Site, who: Credentials | None) -> PageGuard:
    """Return an app with the page and its fonts, behind the guard."""
    site_app = FastAPI(openapi_url=None)
    site_app.mount("/fonts", StaticFiles(directory=ASSETS))
    app = gr.mount_gradio_app(
        site_app,
        blocks,
        "/",
        server_name=host,
        server_port=port,
        auth=(who.user, who.password) if who else None,
        allowed_paths=[str(output)],
        show_error=False,  # an unexpected one is for the log
        max_file_size=uploads.max_size(output),
        app_kwargs={"openapi_url": None},
        theme=theme(),
        head=page_head(),
        footer_links=[],
        run_history=False,
        enable_monitoring=False,
        ssr_mode=False,
        mcp_server=False,
        pwa=False,
    )
    blocks.has_launched = True  # else gradio copies any file that a visitor names to where visitors can read it
    token = "" if who else page_token(output)
    return PageGuard(app, site, output=output, token=token, gradio=app.routes[-1].app)


@dataclass
class ServedPage:
    """A page that answers."""

    server: BackgroundServer
    port: int
    url: str
    token: str  # empty with a password
    public_url: str = ""  # through the tunnel

    @property
    def link(self) -> str:
        """Return what opens the page in a browser."""
        return f"{self.url}/?token={self.token}" if self.token else self.url

    def close(self) -> None:
        self.server.close()

    def wait(self) -> None:
        """Return at Ctrl-C, or when the server has ended."""
        try:
            while self.server.thread.is_alive():
                self.server.thread.join(0.5)  # without a limit, Windows does not notice Ctrl-C
        except KeyboardInterrupt:
            self.close()


def open_tunnel(token: str, host: str, port: int) -> SplitResult:
    """Ask gradio's servers for a public address of this page."""
    try:
        address = networking.setup_tunnel(host, port, token, None, None)
    except Exception as error:
        raise UploadError("no_tunnel", detail=str(error)) from error
    is_own_server = networking.GRADIO_SHARE_SERVER_ADDRESS is not None
    return urlsplit(address)._replace(scheme="http" if is_own_server else "https")


def page_head() -> str:
    """Return the style and the scripts of the page, for the head of the document: gradio leaves them alone."""
    rows = {own: phrases()[key] for own, key in GRADIO_WORDS.items()}
    words = [{"own": own, "en": row.english, "am": row.amharic} for own, row in rows.items()]
    css, script = styles("tokens", "shared", "page"), (ASSETS / "page.js").read_text(encoding="utf-8")
    return html("page.html", "head", words=words, css=css, js=script)
