"""A small vocabulary with the structure of XTTS v2's: the same special tokens in the same places, real merges."""

import itertools
from typing import Any

from utils.core import languages
from utils.xtts.vocabulary import SPACE, START, STOP, UNKNOWN, Vocabulary

MARKS = "!'(),-./:;?\"’"
DIGITS = "0123456789"
LATIN = "abcdefghijklmnopqrstuvwxyzàáâäãåæçčćďèéêëěęğìíîïıłñńňòóôöõøőœřśšşßťùúûüůűýÿźžżə"
CYRILLIC = "абвгдеёжзийклмнопрстуфхцчшщъыьэюя"
ARABIC = "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىيَُِّْ،؟"
DEVANAGARI = "ँंअआइईउऊएऐओऔकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसह़ािीुूृेैोौ्।"
MERGES = (
    "t h|h e|i n|a n|th e|e r|r e|o n|an d|e n|o u|s t|a l|in g|s h|c h|o r|e s|b e|l l|t o|s e|a r|m e|n ə|l ə|d e|s s"
).split("|")
FLAGS = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}


def small_vocabulary(size: int = 0) -> Vocabulary:
    """Make the vocabulary; with a size it is filled up to so many rows with pairs of letters and their merges."""
    symbols = dict.fromkeys(MARKS + DIGITS + LATIN + CYRILLIC + ARABIC + DEVANAGARI)
    opening = [language.token for language in languages.XTTS_LANGUAGES]
    special = [STOP, UNKNOWN, SPACE, START, *opening]
    merges = [(left, right) for left, right in (merge.split(" ") for merge in MERGES)]
    tokens = dict.fromkeys([STOP, UNKNOWN, SPACE, *symbols, START, *opening, *map("".join, merges)])
    for left, right in itertools.product(LATIN + CYRILLIC + ARABIC, repeat=2):
        if len(tokens) >= size:
            break
        if left + right not in tokens:
            tokens[left + right] = None
            merges.append((left, right))
    rows = {token: row for row, token in enumerate(tokens)}
    return Vocabulary(_tree(rows, special, merges)).checked()


def _tree(rows: dict[str, int], special: list[str], merges: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the JSON tree that the tokenizers library reads."""
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": UNKNOWN,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "vocab": rows,
        "merges": [" ".join(pair) for pair in merges],
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": sorted(({"id": rows[token], "content": token, **FLAGS} for token in special), key=_row),
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": model,
    }


def _row(entry: dict[str, Any]) -> int:
    return int(entry["id"])
