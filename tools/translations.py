"""Report facts and errors without wording, phrases without a translation, and phrases that nothing uses.

Run it as ``python -m tools.translations``. It reports only; it never fails.
"""

import ast
import importlib
import pkgutil
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import utils
from utils.config import Config, DatasetConfig, DownloadConfig, SpeechConfig, TrainConfig
from utils.core.errors import ERRORS
from utils.core.facts import KINDS, Unrecognised
from utils.core.paths import ROOT
from utils.core.wording import TABLES, Row, read_table, rows
from utils.studio.page_settings import PageSettings
from utils.ui.i18n import field_area

CONFIGS: tuple[type[Config], ...] = (
    TrainConfig,
    DatasetConfig,
    SpeechConfig,
    DownloadConfig,
    PageSettings,
)


MISSING = "no translation"


def main() -> None:
    """Print the report."""
    texts = set(_texts(ROOT / "utils"))
    fields = set(_field_ids())
    for table in sorted(TABLES.rglob("*.tsv")):
        for row in read_table(table):
            is_page = table.parent.name == "page"
            if problem := _page_problem(row, table.stem, texts, fields) if is_page else "" if row.amharic else MISSING:
                sys.stdout.write(f"{table.name}: {row.id}: {problem}\n")
            fields.discard(row.id)
    for name in sorted(fields):
        sys.stdout.write(f"fields.tsv: {name}: {MISSING}\n")
    for name in sorted({*_wordings()} - rows().keys()):
        sys.stdout.write(f"{name}: no wording\n")


def _page_problem(row: Row, table: str, texts: set[str], fields: set[str]) -> str:
    if not row.amharic:
        return MISSING
    if table == "fields":
        return "" if row.id in fields else "no such field"
    prefixes = (text for text in texts if text.endswith(("_", ".")) and "." in text)  # f"status.{...}"
    is_used = row.id in texts or row.id.removesuffix("_hint") in texts or row.id.startswith(tuple(prefixes))
    return "" if is_used else "not used"


def _wordings() -> Iterator[str]:
    """Yield the ids of all facts and errors, and of the members of the enumerations in their fields."""
    for module in pkgutil.walk_packages(utils.__path__, "utils."):
        if module.name.endswith((".facts", ".errors", ".schema")):
            importlib.import_module(module.name)
    kinds: list[Any] = [*KINDS.values(), *(kind for kind in ERRORS.values() if kind.fields)]
    for kind in kinds:
        if kind.__subclasses__() or kind is Unrecognised:
            continue
        yield kind.__name__
        enums = (each for each in kind.fields.values() if isinstance(each, type) and issubclass(each, Enum))
        yield from (f"{enum.__name__}.{member.value}" for enum in enums for member in enum)


def _texts(folder: Path) -> Iterator[str]:
    """Yield all string literals of the code."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def _field_ids() -> Iterator[str]:
    for config in CONFIGS:
        for name in config.model_fields:
            yield from (f"{field_area(config)}.{name}.{part}" for part in ("title", "description"))


if __name__ == "__main__":
    main()
