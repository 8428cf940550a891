"""JSON beside its recording: of Whisper, WhisperX and other recognisers, or the samples of WebDataset."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched, span_in
from utils.dataset.text_files import SPEAKER, TEXT, json_object

NAME = "JSON beside audio"
IS_LIST = False


def recognise(folder: Folder) -> Match | None:
    files = (path for path in folder.texts_with(".json") if folder.partners(path)[0])
    return matched(0.75, [path for path in files if _has_text(json_object(folder.text(path)))])


def read(folder: Folder, path: Path) -> Iterator[Item]:
    values = json_object(folder.text(path))
    audio = folder.partner(path)
    speaker = next((str(values[name]) for name in SPEAKER if values.get(name)), "")
    segments = _segments(values)
    for segment in segments:
        said_by = str(segment.get("speaker") or speaker)
        yield Row(path, audio, str(segment["text"]), speaker=said_by, span=span_in(segment), is_machine=True)
    if not segments:
        text = next((str(values[name]) for name in TEXT if values.get(name)), "")
        yield Row(path, audio, text, speaker=speaker)


def _has_text(values: Mapping[str, object]) -> bool:
    return bool(_segments(values)) or any(isinstance(values.get(name), str) for name in TEXT)


def _segments(values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    segments = values.get("segments")
    if not isinstance(segments, list):
        return []
    return [each for each in segments if isinstance(each, dict) and "text" in each and span_in(each)]
