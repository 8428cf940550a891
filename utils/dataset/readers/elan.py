"""ELAN: an .eaf beside its recording, with a tier for each speaker.

Tiers that depend on another, or are in other letters than the language, are translations and notes.
"""

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

from utils.dataset.facts import Bad
from utils.dataset.readers.facts import TextNotUsed
from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched
from utils.dataset.text_files import count_letters
from utils.recognition.spans import Span

NAME = "ELAN"
IS_LIST = False


def recognise(folder: Folder) -> Match | None:
    return matched(0.9, folder.texts_with(".eaf"))


def read(folder: Folder, path: Path) -> Iterator[Item]:
    document = ET.fromstring(folder.text(path).encode())  # noqa: S314  # expat itself limits what entities expand to
    slots = {slot.get("TIME_SLOT_ID"): slot.get("TIME_VALUE") for slot in document.iter("TIME_SLOT")}
    audio = _recording(document, folder, path)
    spoken = _spoken(document, folder.language)
    for tier in document.iter("TIER"):
        name = tier.get("TIER_ID", "")
        if tier not in spoken:
            if tier.find(".//ANNOTATION_VALUE") is not None:
                yield Bad(path, TextNotUsed("tier", name))
            continue
        speaker = tier.get("PARTICIPANT") or (name if len(spoken) > 1 else "")
        for annotation in tier.iter("ALIGNABLE_ANNOTATION"):
            start, end = (slots.get(annotation.get(key)) for key in ("TIME_SLOT_REF1", "TIME_SLOT_REF2"))
            text = annotation.findtext("ANNOTATION_VALUE") or ""
            if text.strip() and start and end:
                span = Span(int(start) / 1000, int(end) / 1000)
                yield Row(path, audio, text, speaker=speaker, span=span)


def _spoken(document: ET.Element, language: str) -> list[ET.Element]:
    """Return the tiers with times of their own; of an Amharic recording those in Ethiopic letters, if there are any."""
    timed = [tier for tier in document.iter("TIER") if tier.find(".//ALIGNABLE_ANNOTATION") is not None]
    timed = [tier for tier in timed if not tier.get("PARENT_REF")]
    letters = [count_letters("".join(tier.itertext())) for tier in timed]
    own = [tier for tier, (total, ethiopic) in zip(timed, letters, strict=True) if ethiopic * 2 > total]
    return own if own and language == "am" else timed


def _recording(document: ET.Element, folder: Folder, path: Path) -> Path | str:
    """Return the recording beside a document, or else the one that it names."""
    media = (
        item.get("RELATIVE_MEDIA_URL") or item.get("MEDIA_URL") or "" for item in document.iter("MEDIA_DESCRIPTOR")
    )
    named = (folder.locate(name.removeprefix("file://"), path) for name in media)
    return next((found for found in (folder.partner(path), *named) if isinstance(found, Path)), path.stem)
