"""Read the text of a book: EPUB, Word (.docx), Markdown or plain text. Headings become lines that begin with #."""

import html
import posixpath
import re
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from utils.dataset.readers.archives import foreign
from utils.dataset.readers.facts import ForeignFileError
from utils.dataset.text_files import read_any_encoding

MAX_BYTES = 10 << 20  # of what is unpacked: a text is smaller, a decompression bomb is not
MAX_TAG = 1 << 16  # characters, with all its attributes
LONG_TAG = re.compile(rf"<[A-Za-z/][^<>]{{{MAX_TAG}}}")
CDATA = re.compile(r"(?s)<!\[CDATA\[(.*?)\]\]>")
BREAK = "\0"  # between paragraphs
BLOCKS = frozenset({"p", "div", "li", "br", "tr", "blockquote", "section", "td", "dt", "dd", "w:p", "w:br", "w:tab"})
HEADING = re.compile(r"h[1-6]")
WORD_HEADING = re.compile(r"(?i)heading *\d|title")
UNREAD = frozenset({"head", "style", "script", "rt", "w:instrtext", "w:deltext"})  # rt: pronunciations above a text
Attributes = list[tuple[str, str | None]]  # of a tag


def read_document(path: Path) -> str:
    """Return the text of a document of any kind that is known by its extension."""
    suffix = path.suffix.lower()
    if suffix not in {".epub", ".docx"}:
        return read_any_encoding(path)[0]
    with foreign(path), zipfile.ZipFile(path) as archive:
        parts = _chapters(archive) if suffix == ".epub" else _read(archive, "word/document.xml")
        text = "\n\n".join(filter(None, map(_Text.of, parts)))
    if not text:
        raise ForeignFileError(path, "no_text")
    return text


def _read(archive: zipfile.ZipFile, *names: str) -> Iterator[str]:
    if sum(archive.getinfo(name).file_size for name in names) > MAX_BYTES:
        raise ValueError(f"its text is larger than {MAX_BYTES >> 20} MB")
    return (archive.read(name).decode("utf-8-sig", errors="replace") for name in names)


def _chapters(archive: zipfile.ZipFile) -> Iterator[str]:
    """Return the chapters in reading order."""
    (container,) = _read(archive, "META-INF/container.xml")
    package = next((file["full-path"] for file in _attributes(container, "rootfile")), "")
    (opf,) = _read(archive, package)
    files = {item["id"]: item["href"] for item in _attributes(opf, "item") if "nav" not in item.get("properties", "")}
    spine = [files.get(entry["idref"]) for entry in _attributes(opf, "itemref") if entry.get("linear") != "no"]
    folder = posixpath.dirname(package)
    chapters = (posixpath.normpath(posixpath.join(folder, unquote(href))) for href in spine if href)
    return _read(archive, *dict.fromkeys(chapters))  # each once


def _attributes(xml: str, tag: str) -> list[dict[str, str]]:
    """Return the attributes of every element with this name, whatever its prefix."""
    found = []

    class Elements(HTMLParser):
        def handle_starttag(self, name: str, attrs: Attributes) -> None:
            if name.rpartition(":")[2] == tag:
                found.append({key: value or "" for key, value in attrs})

    Elements().feed(_checked(xml))
    return found


def _checked(markup: str) -> str:
    """Refuse tags of absurd length, and turn CDATA into text, which the parser would leave out."""
    if LONG_TAG.search(markup):
        raise ValueError(f"a tag has more than {MAX_TAG:,} characters")
    return CDATA.sub(lambda section: html.escape(section[1]), markup)


class _Text(HTMLParser):
    """Collects the paragraphs of XHTML or of Word's XML."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.unread = 0

    @classmethod
    def of(cls, document: str) -> str:
        parser = cls()
        parser.feed(f"{_checked(document)}<br>")  # close() takes hours for a megabyte of tags that do not end
        lines = (" ".join(paragraph.split()) for paragraph in "".join(parser.parts).split(BREAK))
        return "\n\n".join(line for line in lines if line.strip("# "))

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        self.unread += tag in UNREAD
        if HEADING.fullmatch(tag):
            self.parts.append(f"{BREAK}# ")
        elif tag == "w:pstyle" and WORD_HEADING.match(dict(attrs).get("w:val") or ""):
            self.parts.append("# ")
        elif tag in BLOCKS:
            self.parts.append(BREAK)

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        if tag not in UNREAD:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self.unread -= tag in UNREAD and self.unread > 0
        if tag in BLOCKS or HEADING.fullmatch(tag):
            self.parts.append(BREAK)

    def handle_data(self, data: str) -> None:
        if not self.unread:
            self.parts.append(data)
