"""The two languages of the page."""

import re
import string
from collections import Counter
from pathlib import Path

from utils.config import TrainConfig
from utils.core.paths import ROOT
from utils.ui.i18n import TABLES, Phrase, field_title, heading, phrases, read_table, t

ROWS = [row for table in TABLES.glob("*.tsv") for row in read_table(table)]


def test_every_id_in_the_code_has_its_phrase() -> None:
    areas = {row.id.partition(".")[0] for row in ROWS if row.english}
    name = re.compile(rf'"((?:{"|".join(areas)})\.[a-z0-9_.]*[a-z0-9_])"')
    code = "\n".join(path.read_text(encoding="utf-8") for path in Path(ROOT / "utils" / "ui").rglob("*.py"))
    assert sorted(set(name.findall(code)) - phrases().keys()) == []


def test_an_id_stands_in_the_tables_once() -> None:
    assert [key for key, count in Counter(row.id for row in ROWS).items() if count > 1] == []


def test_a_translation_has_the_gaps_of_its_phrase() -> None:
    def gaps(text: str) -> set[str]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name}

    assert [row.id for row in ROWS if row.english and row.amharic and gaps(row.english) != gaps(row.amharic)] == []


def test_gaps_are_filled_and_an_unknown_id_comes_back() -> None:
    assert t("project.created", "en", name="Abebe").count("Abebe") == 1
    assert "Abebe" in t("project.created", "am", name="Abebe") != t("project.created", "en", name="Abebe")
    assert t("no.such_phrase", "am") == "no.such_phrase"


def test_the_text_of_a_widget_knows_its_translation() -> None:
    for text, amharic in (
        (t("common.project"), t("common.project", "am")),
        (heading("common.training"), f"## {t('common.training', 'am')}"),
        (field_title(TrainConfig, "num_epochs"), field_title(TrainConfig, "num_epochs", "am")),
    ):
        assert isinstance(text, Phrase)
        assert text.in_language("am") == amharic != text.in_language("en") == text
