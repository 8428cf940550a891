"""ELAN: an .eaf beside its recording, with a tier for each speaker; tiers that depend on another are translations."""

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

from utils.dataset.facts import Bad
from utils.dataset.readers.facts import TextNotUsed
from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched
from utils.recognition.spans import Span

NAME = "ELAN"
IS_LIST = False


def recognise(folder: Folder) -> Match | None:
    return matched(0.9, folder.texts_with(".eaf"))


def read(folder: Folder, path: Path) -> Iterator[Item]:
    document = ET.fromstring(folder.text(path).encode())  # noqa: S314  # expat itself limits what entities expand to
    slots = {slot.get("TIME_SLOT_ID"): slot.get("TIME_VALUE") for slot in document.iter("TIME_SLOT")}
    audio = _recording(document, folder, path)
    for tier in document.iter("TIER"):
        annotations = list(tier.iter("ALIGNABLE_ANNOTATION"))
        if tier.get("PARENT_REF") or not annotations:
            if tier.find(".//ANNOTATION_VALUE") is not None:
                yield Bad(path, TextNotUsed("tier", tier.get("TIER_ID", "")))
            continue
        for annotation in annotations:
            start, end = (slots.get(annotation.get(key)) for key in ("TIME_SLOT_REF1", "TIME_SLOT_REF2"))
            text = annotation.findtext("ANNOTATION_VALUE") or ""
            if text.strip() and start and end:
                span = Span(int(start) / 1000, int(end) / 1000)
                yield Row(path, audio, text, speaker=tier.get("PARTICIPANT") or "", span=span)


def _recording(document: ET.Element, folder: Folder, path: Path) -> Path | str:
    """Return the recording beside a document, or else the one that it names."""
    media = (
        item.get("RELATIVE_MEDIA_URL") or item.get("MEDIA_URL") or "" for item in document.iter("MEDIA_DESCRIPTOR")
    )
    named = (folder.locate(name.removeprefix("file://"), path) for name in media)
    return next((found for found in (folder.partner(path), *named) if isinstance(found, Path)), path.stem)
