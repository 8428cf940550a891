"""A small vocab.json with the exact structure of XTTS v2's: same sections, same special tokens, real merges."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from testing.random_model import small_vocabulary


def vocabulary_data(*, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return the JSON tree; ``without`` leaves single symbols out."""
    data: dict[str, Any] = json.loads(json.dumps(small_vocabulary().data))
    model, absent = data["model"], set(without)
    model["merges"] = [merge for merge in model["merges"] if not absent & set(merge)]
    tokens = [token for token in model["vocab"] if token.startswith("[") or not absent & set(token)]
    model["vocab"] = {token: row for row, token in enumerate(tokens)}
    for token in data["added_tokens"]:
        token["id"] = model["vocab"][token["content"]]
    return data


def write_vocabulary(folder: Path, *, without: Iterable[str] = ()) -> Path:
    """Write vocab.json into a folder and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "vocab.json"
    path.write_text(json.dumps(vocabulary_data(without=without), ensure_ascii=False), encoding="utf-8")
    return path
