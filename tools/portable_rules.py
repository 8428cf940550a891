"""Learn the rules of length and ɨ that an exported voice carries in its vocabulary file.

``python -m tools.portable_rules`` reads the project's own sentences with the front end and finds, one by one, the rules
that correct the most: which consonant is long in which surroundings, then where ɨ is heard after all. It writes them to
``utils/xtts/data/portable_rules.tsv``. ``--measure FILE`` compares the readings of other sentences, one a line.
"""

import argparse
import heapq
import json
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rapidfuzz.distance import Levenshtein

from utils.amharic import from_latin, normalize, phonemize, to_latin
from utils.amharic.alphabet import VOWELS, encode, values
from utils.amharic.tables import numbered_cells
from utils.xtts import portable

ROOT = Path(__file__).parent.parent
SENTENCES = (ROOT / "tools/tiny_voice/data/sentences.tsv", ROOT / "tests/data/amharic_sentences.txt")
LEXICON = ROOT / "utils/amharic/data/lexicon"
OUTSIDE = re.compile(r"[^\u1200-\u135a ]")
LISTED = 0.25  # weight of a word that is only listed, beside one that occurs in a sentence
DAMPING = 0.7  # a word that occurs ten times weighs as much as five others
LEAST = 1.0  # what a rule must correct
LIMIT = 800  # rules of length at most; a quarter as many of vowels
AGAIN = 100  # rules, after which all others are weighed again
STEPS = 100, 200, 400, 800

# What a rule may look at: slots left (nearest last) and right; C is a consonant, V a vowel, ^ and $ are the ends.
LEFT = ",V,C,CV,C CV,CV CV,CV CV CV,^,^ V,^ CV,V V,^ V V,V CV,^ CV CV,^ V CV,V V CV,^ V V V".split(",")
RIGHT = ",CV,C,V,$,CV $,V $,CV CV,CV CV $,V V,V V $,CV V,CV CV CV".split(",")
OWN = "CV,C,V,".split(",")


class Site(NamedTuple):
    """A place where a rule may act, with what it looks at there."""

    contexts: tuple[str, ...]
    wanted: bool
    before: bool
    weight: float


class Learner:
    """Finds rules in the order in which they apply, each the one that then corrects most."""

    def __init__(self, sites: Sequence[Site]) -> None:
        self.sites = sites
        self.state = [site.before for site in sites]
        promising = Counter[str]()
        for site in sites:
            if site.wanted != site.before:
                promising.update(dict.fromkeys(site.contexts, site.weight))
        self.index = defaultdict[str, list[int]](list)
        for number, site in enumerate(sites):
            for context in site.contexts:
                if promising[context] >= LEAST:
                    self.index[context].append(number)

    def learn(self, limit: int) -> Iterator[tuple[str, bool]]:
        """Yield the context of each rule and what holds there."""
        found, waiting = 0, self._queue()
        while waiting and found < limit:
            _, context, value = heapq.heappop(waiting)
            gain = self._gain(context, value=value)
            if gain < LEAST:
                continue
            if waiting and -gain > waiting[0][0]:  # a rule before it took some of its sites
                heapq.heappush(waiting, (-gain, context, value))
                continue
            for number in self.index[context]:
                self.state[number] = value
            yield context, value
            found += 1
            if found % AGAIN == 0:
                waiting = self._queue()  # some may be worth more by now

    def _queue(self) -> list[tuple[float, str, bool]]:
        found = [(-self._gain(key, value=value), key, value) for key in self.index for value in (True, False)]
        heapq.heapify(found)
        return found

    def _gain(self, context: str, *, value: bool) -> float:
        total = 0.0
        for number in self.index[context]:
            if self.state[number] != value:
                site = self.sites[number]
                total += site.weight if site.wanted == value else -site.weight
        return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", type=Path, metavar="FILE", help="measure on sentences instead of learning")
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure.read_text(encoding="utf-8").splitlines())
        return
    readings = [(slots_of(word), read, weight) for word, weight in corpus().items() if (read := reading(word))]
    length = [
        Site(tuple(contexts(slots, place)), read[place][0], before=False, weight=weight)
        for slots, read, weight in readings
        for place in range(len(slots))
        if slots[place][0] not in "Hh"
    ]
    table = [line("length", rule, "long", "short") for rule in Learner(length).learn(LIMIT)]
    vowels = Learner(list(vowel_sites(readings, table)))
    table += [line("vowel", rule, "ɨ", "none") for rule in vowels.learn(LIMIT // 4)]
    head = "# Learned from our own front end and sentences by tools/portable_rules.py; not to be edited by hand.\n"
    head += "# what\tleft\town slot\tright\tvalue\n"
    portable.RULES.write_text(head + "".join("\t".join(cells) + "\n" for cells in table), encoding="utf-8")


def vowel_sites(readings: Iterable[Any], table: Sequence[tuple[str, ...]]) -> Iterator[Site]:
    """Yield where no vowel is written, with what the rules so far say."""
    decide = normalizer(table, -len(list(portable.output_rules("latin"))))
    for slots, read, weight in readings:
        decided = decide("".join(map(portable.write_slot, slots)))[2::3]
        for place in (place for place, slot in enumerate(slots) if not slot[2]):
            heard = decided[place] == portable.VOWEL["I"]
            yield Site(tuple(contexts(slots, place)), read[place][1], heard, weight)


def line(kind: str, rule: tuple[str, bool], yes: str, no: str) -> tuple[str, ...]:
    context, value = rule
    return (kind, *(cell or "∅" for cell in context.split("\t")), yes if value else no)


def corpus() -> dict[str, float]:
    """Count the words of our own sentences and word lists."""
    found = Counter[str]()
    for path in SENTENCES:
        for row in path.read_text(encoding="utf-8").splitlines():
            found.update(words(row.rpartition("\t")[2]))
    weighed = {word: count**DAMPING for word, count in found.items()}
    for path in LEXICON.glob("*.tsv"):
        for _, cells in numbered_cells(path):
            word = cells[0].replace("ː", "")
            weighed[word] = weighed.get(word, 0.0) + LISTED
    return {word: weight for word, weight in weighed.items() if set(word) <= values().keys()}


def words(text: str) -> list[str]:
    return OUTSIDE.sub(" ", normalize(text)).split()


def slots_of(word: str) -> list[portable.Slot]:
    return [slot for letter in word for slot in portable.slots(letter)]


def reading(word: str) -> list[tuple[bool, bool]] | None:
    """Return for each slot of a word whether it is read long and whether ɨ follows; None if the letters do not show."""
    codes = encode(phonemize(word).replace("ʷ", "w"))
    if codes[:1] in VOWELS.values():
        codes = f"H{codes}"  # the glottal stop that is not written
    sounds = iter(re.findall("([^:EuiaeIo])(:?)([EuiaeIo]?)", codes))
    found = []
    for consonant, labial, _ in slots_of(word):
        code, long, vowel = next(sounds, ("", "", ""))
        if labial and code == consonant:
            glide, _, vowel = next(sounds, ("", "", ""))
            code = code if glide == "w" else ""
        if code != consonant:
            return None
        found.append((bool(long), vowel == "I"))
    return None if next(sounds, None) else found


def contexts(slots: Sequence[portable.Slot], place: int) -> Iterator[str]:
    """Yield everything that a rule may say about the surroundings of a slot."""
    lefts = [found for shape in LEFT if (found := side(slots, place, -1, shape)) is not None]
    rights = [found for shape in RIGHT if (found := side(slots, place, 1, shape)) is not None]
    owns = [shown(slots[place], parts) for parts in OWN]
    for left in lefts:
        yield from (f"{left}\t{own}\t{right}" for own in owns for right in rights)


def side(slots: Sequence[portable.Slot], place: int, step: int, shape: str) -> str | None:
    """Return the slots on one side as a shape shows them; None if the word does not have them."""
    parts = []
    for part in shape.split()[::step]:
        place += step
        is_inside = 0 <= place < len(slots)
        if is_inside == (part in "^$"):
            return None
        parts.append(shown(slots[place], part) if is_inside else part)
    return "|".join(parts[::step])


def shown(slot: portable.Slot, parts: str) -> str:
    consonant, labial, vowel = slot
    return (consonant + labial if "C" in parts else ".") + ((vowel or "0") if "V" in parts else ".")


def normalizer(learned: Sequence[Sequence[str]], last: int | None = None) -> Any:  # noqa: ANN401  # has no types
    """Return the function that applies the rules to a word."""
    from tokenizers import Tokenizer, models

    rules = list(portable.spelling_rules("latin", {}, learned))[:last]
    content = json.loads(Tokenizer(models.BPE()).to_str()) | {"normalizer": {"type": "Sequence", "normalizers": rules}}
    return Tokenizer.from_str(json.dumps(content)).normalizer.normalize_str


def measure(sentences: Sequence[str]) -> None:
    """Print the phone difference to our front end, with and without length, for numbers of rules, and the time."""
    learned = portable.learned_rules()
    texts = [" ".join(words(sentence)) for sentence in sentences]
    ours = [phones(to_latin(phonemize(text))) for text in texts]
    length, vowel = ([rule for rule in learned if rule[0] == kind] for kind in ("length", "vowel"))
    for chosen in ([], *(length[:count] for count in STEPS if count < len(length)), [*length, *vowel]):
        read = normalizer(chosen)
        start = time.process_time()
        theirs = [phones(" ".join(map(read, text.split()))) for text in texts]
        seconds = (time.process_time() - start) / len(texts)
        shares = difference(ours, theirs), difference([*map(shortened, ours)], [*map(shortened, theirs)])
        shown = "{} learned rules: {:.2%} of the phones differ, {:.2%} without length, {:.1f} ms a sentence\n"
        sys.stdout.write(shown.format(len(chosen), *shares, 1000 * seconds))


def phones(latin: str) -> list[str]:
    return re.findall(r"[^\W\d_][͡ʃʒʼ]*|ː", from_latin(latin))


def shortened(text: Sequence[str]) -> list[str]:
    return [phone for phone in text if phone != "ː"]


def difference(ours: Sequence[Sequence[str]], theirs: Sequence[Sequence[str]]) -> float:
    return sum(map(Levenshtein.distance, ours, theirs)) / sum(map(len, ours))


if __name__ == "__main__":
    main()
