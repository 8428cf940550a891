"""Report phrases of the page without a translation, and translations that nothing uses.

Run it as ``python -m tools.translations``. It reports only; it never fails.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from utils.config import Config, DatasetConfig, DownloadConfig, SpeechConfig, TrainConfig
from utils.core.paths import ROOT
from utils.core.wording import TABLES, Row, read_table
from utils.studio.page_settings import PageSettings
from utils.ui.i18n import GAP, field_area

CONFIGS: tuple[type[Config], ...] = (
    TrainConfig,
    DatasetConfig,
    SpeechConfig,
    DownloadConfig,
    PageSettings,
)
FROM_BELOW = {"errors", "terms"}  # tables whose English is written below the page
PYDANTIC = "should be"  # its own messages


def main() -> None:
    """Print the report."""
    texts = set(_texts(ROOT / "utils"))
    whole = "\n".join(texts)
    fields = set(_field_ids())
    for table in sorted((TABLES / "page").glob("*.tsv")):
        for row in read_table(table):
            if problem := _problem(row, table.stem, texts, whole, fields):
                sys.stdout.write(f"{table.name}: {row.id}: {problem}\n")
            fields.discard(row.id)
    for name in sorted(fields):
        sys.stdout.write(f"fields.tsv: {name}: no translation\n")


def _problem(row: Row, table: str, texts: set[str], whole: str, fields: set[str]) -> str:
    if not row.amharic:
        return "no translation"
    if table == "fields":
        return "" if row.id in fields else "no such field"
    if table in FROM_BELOW:
        parts = (part for part in GAP.split(row.english) if len(part) > 3)
        known = row.id == "errors.internal" or PYDANTIC in row.english or all(part in whole for part in parts)
        return "" if known else f"not in the code: {row.english}"
    prefixes = (text for text in texts if text.endswith(("_", ".")) and "." in text)  # f"status.{...}"
    is_used = row.id in texts or row.id.removesuffix("_hint") in texts or row.id.startswith(tuple(prefixes))
    return "" if is_used else "not used"


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
