"""One way to make HTML: the templates, which escape; no Python writes a tag."""

import ast
import re
from pathlib import Path

from utils.core.paths import ROOT
from utils.ui.html import html, styles

UI = ROOT / "utils" / "ui"
TAG = re.compile(r"</?[a-z][a-z0-9]*[ >/]|<[a-z]+ ?$")
PENDING: set[str] = set()  # files that still put HTML together themselves


def tags(path: Path) -> list[str]:
    """Return the strings of a file, docstrings apart, that contain a tag."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [f"{path.name}:{node.lineno}" for node in texts if TAG.search(str(node.value))]


def test_no_python_writes_a_tag() -> None:
    found = {path.relative_to(UI).as_posix(): tags(path) for path in UI.rglob("*.py")}
    assert {name: lines for name, lines in found.items() if lines and name not in PENDING} == {}


def test_templates_escape_what_they_are_given() -> None:
    shown = html("views.html", "button", "", "", "<img src=x>") + html("page.html", "empty", "welcome", "<b>", "&")
    assert "<img" not in shown
    assert "<b>" not in shown


def test_nothing_is_smaller_than_twelve_pixels() -> None:
    found = re.findall(r"(?:font-size:|font:[^;]*?|--t\d:) ?([\d.]+)px", styles("tokens", "shared", "page", "report"))
    sizes = [float(size) for size in found]
    assert sizes
    assert min(sizes) >= 12


def test_templates_styles_and_scripts_have_at_most_1500_lines() -> None:
    files = [path for path in UI.rglob("*") if path.suffix in {".html", ".css", ".js"}]
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 1500


def test_the_font_of_amharic_is_small() -> None:
    fonts = [*(UI / "assets").glob("*.woff2")]
    assert sum(font.stat().st_size for font in fonts) <= 150_000


def test_the_font_comes_with_its_licence() -> None:
    assert "SIL OPEN FONT LICENSE" in (UI / "assets" / "OFL.txt").read_text(encoding="utf-8")
