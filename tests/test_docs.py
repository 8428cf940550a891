"""What the guides say is so: their commands are understood, their files and settings exist, their figures are fresh."""

import argparse
import ast
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from docs import make_api
from utils.__main__ import known_verbs, load_command
from utils.config import TrainConfig
from utils.config.flags import read_flags
from utils.core.paths import ROOT

GUIDES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "SECURITY.md"]
RECORDS = [*sorted((ROOT / "docs" / "decisions").glob("*.md")), ROOT / "benchmarks" / "log.md"]
OF_DEVELOPERS = [
    ROOT / "CONTRIBUTING.md",
    *(ROOT / folder / "README.md" for folder in ("benchmarks", "tools/gpu", "tools/tiny_voice")),
]
PAGES = [*GUIDES, *RECORDS]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(?:tests|benchmarks|configs|utils|docs)/[\w./-]*\w\.(?:py|md|yaml|tsv|json)")
STARTERS = (["./start.sh"], ["python", "-m", "utils"], [".venv/bin/python", "-m", "utils"])
OTHERS = {
    "accelerate",
    "mkdir",
    "pip",
    "pip-audit",
    "pytest",
    "python",
    "ray",
    "sudo",
    "tts",
}  # their flags are not ours to check
FOR_THE_PAGE = {"test", "--share", "--host", "--port"}  # what start.sh takes besides verbs
CALL = {"resume", "accept_licence", "progress"}  # of train_gpt, besides the settings


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(path: Path, kind: str) -> list[str]:
    return [text for found, text in BLOCK.findall(path.read_text(encoding="utf-8")) if found == kind]


def commands(path: Path) -> list[str]:
    """Every line of the bash blocks, and what a sentence tells to run of ours."""
    lines = "\n".join(blocks(path, "bash")).replace("\\\n", " ").splitlines()
    told = re.findall(r"`((?:python -m utils|\./start\.sh) [\w-]+ [^`<]+)`", path.read_text(encoding="utf-8"))
    return [*(line for line in lines if line.strip() and line[0] != "#"), *told]


def words_of(line: str) -> list[str]:
    """The words of a command without comments, variables before it and what it is piped into."""
    words = shlex.split(line, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words.pop(0)
    return words[: words.index("|")] if "|" in words else words


COMMANDS = [pytest.param(line, id=f"{named(page)}: {line[:60]}") for page in PAGES for line in commands(page)]


@cache
def parser_of(verb: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=verb, allow_abbrev=False, exit_on_error=False)
    load_command(verb).add_arguments(parser)
    return parser


def check_ours(words: list[str]) -> None:
    """A command of ours is understood by its own parser, and its settings are within their bounds."""
    verb, *rest = words
    assert verb in known_verbs()
    try:
        arguments = parser_of(verb).parse_args(rest)
    except SystemExit as end:
        if end.code:  # 0: help was requested
            pytest.fail(f"{verb} does not take {rest}")
        return
    if hasattr(arguments, "config"):
        module = load_command(verb)
        names = ("CONFIG", "SpeechConfig") if getattr(arguments, "action", "") != "filter" else ("DatasetConfig",)
        read_flags(arguments, next(getattr(module, name) for name in names if hasattr(module, name)))


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_is_understood(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = words_of(line)
    starter = next((start for start in STARTERS if words[: len(start)] == start), None)
    if starter is None:
        assert words[0] in OTHERS, "neither ours nor known"
        assert [word for word in words if FILE.fullmatch(word) and not (ROOT / word).exists()] == []
        starter = words[: words.index("utils") + 1] if "utils" in words else words  # accelerate starts ours
    if (rest := words[len(starter) :]) and rest[0] not in FOR_THE_PAGE:
        check_ours(rest)


@pytest.mark.parametrize("page", [*PAGES, *OF_DEVELOPERS, ROOT / "CHANGELOG.md"], ids=named)
def test_links_lead_somewhere_in_the_repository(page: Path) -> None:
    targets = [target for target in links(page) if not (page.parent / target.partition("#")[0]).exists()]
    assert targets == []


@pytest.mark.parametrize("page", [*PAGES, *OF_DEVELOPERS, ROOT / "CHANGELOG.md"], ids=named)
def test_links_to_a_section_lead_to_one(page: Path) -> None:
    pairs = [(target, *target.split("#")) for target in links(page) if "#" in target]
    pages = {file: page if not file else (page.parent / file).resolve() for _, file, _ in pairs}
    assert [target for target, file, anchor in pairs if anchor not in anchors(pages[file])] == []


def links(page: Path) -> list[str]:
    """The targets of a page's links that stay in the repository."""
    return [to for to in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")) if "://" not in to]


@cache
def anchors(page: Path) -> set[str]:
    """What a link can name behind #, made of the headings as GitHub does."""
    titles = re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", GUIDES, ids=named)
def test_a_guide_needs_no_other_site(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.search(r"https?://(?!127\.0\.0\.1|localhost)|\.\./shared|/work/", text) is None


def test_the_tree_in_contributing_is_the_disk() -> None:
    tree = next(
        text for kind, text in BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")) if not kind
    )
    paths = [line.partition(" ")[0] for line in tree.splitlines() if line.strip()]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert {path.stem for path in (ROOT / "utils").iterdir() if path.stem[0] not in "_."} <= {*re.findall(r"\w+", tree)}


def test_the_files_of_the_walks_exist() -> None:
    walks = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Walks")[2].partition("\n## ")[0]
    files = {f"/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "utils").rglob("*.py")}
    named_files = re.findall(r"`([\w/]+\.py)`", walks)
    assert len(named_files) > 40
    assert [name for name in named_files if not any(file.endswith(f"/{name}") for file in files)] == []


def test_files_that_are_named_exist() -> None:
    named_files = {name for page in GUIDES for name in FILE.findall(page.read_text(encoding="utf-8"))}
    assert sorted(name for name in named_files if not (ROOT / name).exists()) == []


@pytest.mark.parametrize("page", GUIDES, ids=named)
def test_python_in_a_guide_names_what_there_is(page: Path) -> None:
    for text in blocks(page, "python"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("utils"):
                assert [alias.name for alias in node.names if not defines(str(node.module), alias.name)] == []
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "train_gpt":
                words = {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
                TrainConfig.parse({name: value for name, value in words.items() if name not in CALL})


def defines(module: str, name: str) -> bool:
    """Look for a name at the top of a module, without importing it."""
    path = ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    body = ast.parse(file.read_text(encoding="utf-8")).body
    imported = {alias.asname or alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names}
    return name in imported | {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_the_reference_is_what_the_code_says() -> None:
    assert make_api.PAGE.read_text(encoding="utf-8") == make_api.page(), "run: python docs/make_api.py"
