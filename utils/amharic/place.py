"""A word in its sentence, as the rules of context see it."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from utils.amharic.alphabet import read
from utils.amharic.analysis import Reading
from utils.amharic.lexicon import Stems

ACCUSATIVE = re.compile("(?<!c:)nI?(m|n:a|s:)?$")  # ሁሉንም, ዳቦንና
MAIN = frozenset({"", "y", "t", "H", "Hn:", "Hal", "Hay", "Hat:", "Han:"})  # prefixes of a verb that may end a sentence
PLACES = frozenset(read("ላይ ውስጥ ጋር አጠገብ ስር ፊት እዚህ እዚያ ዘንድ መካከል").split())


class Place(NamedTuple):
    """A word in its sentence: the code words of the sentence, what has been chosen before, and the marks around it."""

    words: Sequence[str]
    chosen: Sequence[Reading]
    earlier: Sequence[Reading]  # those of the clause before, which a semicolon ends
    before: str
    after: str
    end: str  # the mark that ends the sentence
    stems: Stems

    @property
    def last(self) -> Reading | None:
        """Return the reading of the word before."""
        return self.chosen[-1] if self.chosen else None

    @property
    def is_last(self) -> bool:
        return len(self.chosen) == len(self.words) - 1

    def neighbour(self, distance: int) -> str:
        """Return the code word so many places further on in the sentence, or nothing."""
        place = len(self.chosen) + distance
        return self.words[place] if 0 <= place < len(self.words) else ""
