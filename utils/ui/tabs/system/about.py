"""The guides that come with the program, to be read here; versions and places, for questions and reports."""

import importlib.metadata
import platform
import re
from pathlib import Path

import gradio as gr

from utils.core import paths
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, RAW_INPUTS, PageContext, show_errors
from utils.ui.tabs.system.settings import place
from utils.ui.views import cell, table

GUIDES = paths.ROOT / "docs"
PACKAGES = ("gradio", "torch", "torchaudio", "coqui-tts", "transformers", "faster-whisper", "accelerate", "numpy")
RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?!#)[^)]*\)")


def guides() -> list[tuple[str, str]]:
    """List the guides that exist as (title, file name)."""
    return [(title(path), path.name) for path in sorted(GUIDES.glob("*.md")) if path.name != "log.md"]


def title(path: Path) -> str:
    """Return the heading of a guide."""
    first = path.read_text(encoding="utf-8").lstrip().partition("\n")[0]
    return first.lstrip("# ") or path.stem


def guide(name: str) -> str:
    """Return the text of a guide; links to other files, which this page does not give out, become their words."""
    known = {file for _, file in guides()}
    if name not in known:
        return ""
    return RELATIVE.sub(r"\2", (GUIDES / name).read_text(encoding="utf-8"))


def build_guides(page: PageContext) -> None:
    """Lay out the choice of a guide and its text."""
    chosen = gr.Dropdown(
        guides(), value=None, label=t("system.guide"), info=t("system.guide_hint"), interactive=True, elem_id="guide"
    )
    with gr.Column(elem_id="guide-text"):
        text = gr.Markdown(elem_classes="guide")

    def read(name: str | None) -> str:
        return guide(name or "")

    chosen.change(show_errors(read), chosen, text, api_name="guide", **RAW_INPUTS)
    page.blocks.load(lambda: gr.update(choices=guides()), None, chosen, **PRIVATE_EVENT)


def build_versions(page: PageContext) -> None:
    """Lay out the table of versions and places."""
    shown = gr.HTML(elem_id="versions")
    gr.on(
        [page.blocks.load, page.language.change],
        lambda language: versions(page.output, language),
        page.language,
        shown,
        api_name="versions",
        **QUIET_EVENT,
    )


def versions(output: Path, language: str) -> str:
    """Show what is installed and where things lie."""
    rows = {
        "Python": f"{platform.python_version()} · {platform.platform()}",
        **{name: _version(name) or t("system.missing", language) for name in PACKAGES},
        "system.projects": str(output),
        "system.base_models": str(paths.MODELS),
        "system.page_settings": str(place(output)),
    }
    titles = [t(words, language) for words in ("common.what", "system.version_or_path")]
    return table(titles, [(cell(t(name, language), classes="mark"), cell(value)) for name, value in rows.items()])


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
