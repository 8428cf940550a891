"""ELAN: an .eaf beside its recording, with a tier for each speaker; tiers that depend on another are translations."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from utils.dataset.facts import Bad
from utils.dataset.readers.archives import foreign
from utils.dataset.readers.facts import TextNotUsed, Unused
from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched
from utils.dataset.readers.timed import partner
from utils.recognition.spans import Span

NAME = "ELAN"
IS_LIST = False


def recognise(folder: Folder) -> Match | None:
    return matched(0.9, folder.texts_with(".eaf"))


def read(folder: Folder, files: Sequence[Path]) -> Iterator[Item]:
    for path in files:
        with foreign(path):
            document = parse_xml(folder.text(path))
            yield from _rows(folder, path, document)


def parse_xml(text: str) -> ET.Element:
    """Parse XML; expat itself limits what entities expand to."""
    try:
        return ET.fromstring(text.encode())  # noqa: S314
    except ET.ParseError as error:
        raise ValueError(str(error)) from error


def _rows(folder: Folder, path: Path, document: ET.Element) -> Iterator[Item]:
    slots = {slot.get("TIME_SLOT_ID"): slot.get("TIME_VALUE") for slot in document.iter("TIME_SLOT")}
    media = [
        item.get("RELATIVE_MEDIA_URL") or item.get("MEDIA_URL") or "" for item in document.iter("MEDIA_DESCRIPTOR")
    ]
    named = (folder.locate(name.removeprefix("file://"), path) for name in media)
    audio = partner(folder, path) or next(filter(None, named), path.stem)
    for tier in document.iter("TIER"):
        name = tier.get("TIER_ID", "")
        annotations = list(tier.iter("ALIGNABLE_ANNOTATION"))
        if tier.get("PARENT_REF") or not annotations:
            if tier.find(".//ANNOTATION_VALUE") is not None:
                yield Bad(path, TextNotUsed(Unused.TIER, name))
            continue
        for annotation in annotations:
            start, end = (slots.get(annotation.get(key)) for key in ("TIME_SLOT_REF1", "TIME_SLOT_REF2"))
            text = annotation.findtext("ANNOTATION_VALUE") or ""
            if text.strip() and start and end:
                yield Row(path, audio, text, tier.get("PARTICIPANT") or "", Span(int(start) / 1000, int(end) / 1000))
