"""Makes a small vocab.json with the exact structure of XTTS v2's: same sections, same special tokens, real merges."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LANGUAGE_TOKENS = (
    "[en] [de] [START] [fr] [es] [it] [pt] [pl] [tr] [ru] [cs] [nl] [ar] [zh-cn] [ja] [hu] [ko] [hi]".split()
)
MARKS = "!'(),-./:;?\"’"
LETTERS = "abcdefghijklmnopqrstuvwxyz" + "àáâäãåæçčćďèéêëěęíîïìłñńňóôöõøœřśšßťúùûüůýźžż" + "ğışő" + "ə"
OTHER_SCRIPTS = (
    "абвгдежзийклмнопрстуфхцчшщъыьэюя" + "ابتثجحخدذرزسشصضطظعغفقكلمنهويةىأإآؤئ" + "कखगघचछजटठडतथदधनपफबभमयरलवशसह"
)
MERGES = (
    "t h|h e|i n|a n|th e|e r|r e|o n|an d|e n|o u|s t|a l|in g|s h|c h|o r|e s|b e|l l|t o|s e|a r|m e|n ə|l ə|d e|s s"
).split("|")


def vocabulary_data(*, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return the JSON tree; ``without`` leaves single symbols out."""
    symbols = [symbol for symbol in MARKS + LETTERS + OTHER_SCRIPTS if symbol not in set(without)]
    merges = [merge for merge in MERGES if not set(without) & set(merge)]
    tokens = ["[STOP]", "[UNK]", "[SPACE]", *symbols, *(merge.replace(" ", "") for merge in merges), *LANGUAGE_TOKENS]
    rows = {token: row for row, token in enumerate(dict.fromkeys(tokens))}
    flags = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    special = ["[STOP]", "[UNK]", "[SPACE]", *LANGUAGE_TOKENS]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": rows[token], "content": token, **flags} for token in special],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "[UNK]",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "vocab": rows,
            "merges": merges,
        },
    }


def write_vocabulary(folder: Path, *, without: Iterable[str] = ()) -> Path:
    """Write vocab.json into a folder and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "vocab.json"
    path.write_text(json.dumps(vocabulary_data(without=without), ensure_ascii=False), encoding="utf-8")
    return path
