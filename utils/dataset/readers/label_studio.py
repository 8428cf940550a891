"""Label Studio: tasks with the transcripts that people gave them, of whole recordings or of regions."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from utils.core.storage import parse_json
from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched, span_in, unreadable

NAME = "Label Studio"
IS_LIST = True


def recognise(folder: Folder) -> Match | None:
    files = folder.texts_with(".json")
    return matched(0.95, [path for path in files if '"annotations"' in folder.text(path) and tasks(folder.text(path))])


def read(folder: Folder, path: Path) -> Iterator[Item]:
    for number, task in enumerate(tasks(folder.text(path)), start=1):
        data = _mapping(task.get("data"))
        audio = next((str(data[key]) for key in ("audio", "url", "path") if key in data), "")
        audio = audio or next((value for value in data.values() if isinstance(value, str)), "")
        accepted = [each for each in _mappings(task.get("annotations")) if not each.get("was_cancelled")]
        rows = list(_rows(path, number, audio, _mappings(accepted[-1].get("result")))) if accepted else []
        if not rows:
            yield unreadable(path, number, audio, "no_text")
        yield from rows


def tasks(text: str) -> list[Mapping[str, Any]]:
    """Return the tasks of an export; none of any other JSON."""
    try:
        values = parse_json(text)
    except ValueError:
        return []
    is_export = isinstance(values, list) and all(isinstance(value, dict) and "annotations" in value for value in values)
    return values if is_export else []


def _rows(path: Path, number: int, audio: str, results: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    """Yield the texts of a task; the label of a region may be its speaker."""
    labels = {str(each.get("id")): found for each in results if (found := _mapping(each.get("value")).get("labels"))}
    for each in results:
        value = _mapping(each.get("value"))
        text = value.get("text")
        written = " ".join(map(str, text)) if isinstance(text, list) else str(text or "")
        if not written.strip():
            continue
        speaker = labels.get(str(each.get("id"))) or []
        is_speaker = (
            isinstance(speaker, list)
            and len(speaker) == 1
            and str(speaker[0]).casefold() not in {"speech", "noise", "voice"}
        )
        yield Row(path, audio, written, number, str(speaker[0]) if is_speaker else "", span_in(value))


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
