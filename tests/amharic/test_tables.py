"""The language is data: every table can be read, and a bad line is named."""

from pathlib import Path

import pytest

from utils.amharic.tables import DATA, TableError, read_mapping, read_rows


@pytest.mark.parametrize("path", sorted(DATA.rglob("*.tsv")), ids=lambda path: path.stem)
def test_every_table_says_where_it_comes_from(path: Path) -> None:
    header = [line for line in path.read_text(encoding="utf-8").splitlines()[:12] if line.startswith("#")]
    assert "own knowledge" in " ".join(header).lower()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("one cell", r"odd\.tsv:2: expected 2"),
        ("a\t", r"odd\.tsv:2: expected 2"),
        ("a\tb\tc", r"odd\.tsv:2: expected 2"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "odd.tsv"
    path.write_text(f"# comment\n{line}\n", encoding="utf-8")
    with pytest.raises(TableError, match=said):
        read_rows(path, columns=2)


def test_a_key_written_twice_is_named(tmp_path: Path) -> None:
    path = tmp_path / "twice.tsv"
    path.write_text("a\t1\nb\t2\na\t3\n", encoding="utf-8")
    with pytest.raises(TableError, match=r"twice\.tsv:3: 'a' appears twice"):
        read_mapping(path)


@pytest.mark.parametrize(("content", "said"), [(None, "no such table"), (b"\xff\xfe", "not UTF-8")])
def test_a_table_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "table.tsv"
    if content:
        path.write_bytes(content)
    with pytest.raises(TableError, match=said):
        read_rows(path, columns=2)
