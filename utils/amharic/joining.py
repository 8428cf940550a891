"""Words that were split at morphemes, as some corpora of speech do: የ ትግራይ, ገንዘባቸው ን."""

from collections.abc import Sequence
from functools import lru_cache

from utils.amharic.alphabet import WORD, read
from utils.amharic.analysis import readings
from utils.amharic.lexicon import stems

SPLIT = 0.08  # share of single letters that are affixes from which a text counts as split; else it is below 0.01
_AFFIXES = frozenset("የበለከንናምልችውኝ")
_MOST = 6  # pieces of one word
_WORD = 3.0  # cost of a word
_LETTER = 6.0  # of a word of one letter
_UNLISTED = 7.0  # of a word without an analysis
_EACH = 2.5  # and of each of its letters
_LISTED = 9.0  # readings that cost less were found in the lists


def is_split(written: Sequence[str]) -> bool:
    """Return whether so many affixes stand alone that the words must be pieces."""
    return sum(word in _AFFIXES for word in written) > SPLIT * len(written)


def whole_words(written: Sequence[str]) -> list[list[str]]:
    """Group the pieces of a text by the words that they make: those of the likeliest readings, and few of them."""
    if not is_split(written):
        return [[word] for word in written]
    best = [(0.0, 0)]  # the least cost of the words up to here, and where the last one begins
    for end in range(1, len(written) + 1):
        starts = range(max(0, end - _MOST), end)
        best.append(min((best[start][0] + _cost("".join(written[start:end])), start) for start in starts))
    words, end = [], len(written)
    while end:
        words.append(list(written[best[end][1] : end]))
        end = best[end][1]
    return words[::-1]


@lru_cache(1 << 16)
def _cost(word: str) -> float:
    if not WORD.fullmatch(word):
        return _WORD if len(word) == 1 else _WORD + _UNLISTED + 2 * _EACH * len(word)
    least = min((reading.cost for reading in readings(read(word), stems())), default=_LISTED)
    if least >= _LISTED:
        least = _UNLISTED + _EACH * len(word)
    return _WORD + least + (_LETTER if len(word) == 1 else 0.0)
