"""The text of books in each format, with their headings."""

import contextlib
import time
import zipfile
from pathlib import Path

import pytest

from utils.core.errors import DataError
from utils.dataset import documents
from utils.dataset.documents import read_document

CONTAINER = '<container><rootfiles><rootfile full-path="OEBPS/content.opf"/></rootfiles></container>'
PACKAGE = """<package xmlns:opf="o"><manifest>
<item id="b" href="two%20b.xhtml"/><item id="a" href="one.xhtml"/><item id="n" href="nav.xhtml" properties="nav"/>
</manifest><spine><itemref idref="n"/><itemref idref="a"/><itemref idref="b"/></spine></package>"""
ONE = """<html><head><title>no</title><style>p {}</style></head><body><h1>ምዕራፍ <b>አንድ</b></h1>
<p>ሰላም ለ<i>ዓለም</i>።<br/>ሁለተኛ&#160;መስመር &amp; ሌላ።</p><script>no</script></body></html>"""
WORD = """<w:document><w:body>
<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>ምዕራፍ አንድ</w:t></w:r></w:p>
<w:p><w:r><w:t>ሰላም </w:t></w:r><w:r><w:delText>no</w:delText><w:t>ለዓለም።</w:t></w:r></w:p>
</w:body></w:document>"""


def packed(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def epub(path: Path, **chapters: str) -> Path:
    files = {"META-INF/container.xml": CONTAINER, "OEBPS/content.opf": PACKAGE, "OEBPS/nav.xhtml": "<p>no</p>"}
    return packed(path, files | {f"OEBPS/{name}.xhtml": text for name, text in chapters.items()})


def test_an_epub_is_read_in_the_order_of_its_spine(tmp_path: Path) -> None:
    path = epub(tmp_path / "book.EPUB", **{"two b": "<h2>ምዕራፍ ሁለት</h2>ቻው", "one": ONE})
    expected = ["# ምዕራፍ አንድ", "ሰላም ለዓለም።", "ሁለተኛ መስመር & ሌላ።", "# ምዕራፍ ሁለት", "ቻው"]
    assert read_document(path).split("\n\n") == expected


def test_a_word_document_is_read_with_its_headings(tmp_path: Path) -> None:
    path = packed(tmp_path / "book.docx", {"word/document.xml": WORD})
    assert read_document(path) == "# ምዕራፍ አንድ\n\nሰላም ለዓለም።"


def test_a_chapter_that_is_listed_a_thousand_times_is_read_once(tmp_path: Path) -> None:
    spine = PACKAGE.replace('<itemref idref="a"/>', '<itemref idref="a"/>' * 1000)
    files = {"META-INF/container.xml": CONTAINER, "OEBPS/content.opf": spine, "OEBPS/one.xhtml": ONE}
    path = packed(tmp_path / "book.epub", files | {"OEBPS/two b.xhtml": "", "OEBPS/nav.xhtml": ""})
    assert read_document(path).count("አንድ") == 1


@pytest.mark.parametrize("name", ["cut.epub", "cut.docx", "other.epub", "bomb.docx", "empty.docx"])
def test_what_is_no_book_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_BYTES", 10_000)
    contents = {"bomb.docx": "x" * 20_000, "empty.docx": "<w:p/>"}
    path = packed(tmp_path / name, {"word/document.xml": contents.get(name, WORD)})
    if name.startswith("cut"):
        path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(DataError, match=name):
        read_document(path)


@pytest.mark.parametrize("tag", ["<a b='", "<!--", "<"])
def test_tags_that_never_end_take_no_time(tmp_path: Path, tag: str) -> None:
    path, began = packed(tmp_path / "book.docx", {"word/document.xml": tag * 200_000}), time.process_time()
    with pytest.raises(DataError, match="no text") if tag != "<" else contextlib.nullcontext():
        read_document(path)
    assert time.process_time() - began < 5


def test_cdata_is_read(tmp_path: Path) -> None:
    path = packed(tmp_path / "book.docx", {"word/document.xml": WORD.replace("ለዓለም።", "<![CDATA[ለዓለም <። & ]]>")})
    assert "ሰላም ለዓለም <። &" in read_document(path)


def test_a_tag_with_a_million_attributes_is_refused(tmp_path: Path) -> None:
    path, began = (
        packed(tmp_path / "book.docx", {"word/document.xml": f"<w:p {'a=1 ' * 1_000_000}>ሰላም"}),
        time.process_time(),
    )
    with pytest.raises(DataError, match="a tag has more than"):
        read_document(path)
    assert time.process_time() - began < 5
