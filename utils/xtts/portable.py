"""A voice that programs which know no Amharic can speak: the front end, compiled into the vocabulary file.

Programs built on coqui-tts load ``vocab.json``, clean a text in one of their own languages, and encode it. They refuse
``am``, and under another language Ethiopic letters become [UNK]. So an exported voice gets two things:

- an alias: the row of ``[am]`` also stands at a language whose cleaners leave our spelling alone;
- a normalizer: ordered replacements in ``vocab.json`` itself, which every program that loads the file applies to a text
  after its own cleaners. They read marks, letters, long consonants and the ɨ between consonants.

While it is rewritten, a word consists of slots of three characters, taken from a script that no voice reads (Vai): a
consonant, whether it is long, and its vowel. Equal widths make every context a plain look-behind or look-ahead. What
is written in our spelling, or in other Latin letters, has no slots and passes unchanged.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.amharic import normalize, phonemize, to_latin
from utils.amharic.alphabet import CONSONANTS, VOWELS, fold, values
from utils.amharic.syllables import NASAL, PARTING, SONORITY, SUFFIXED, TIGHT, WITH_S
from utils.amharic.tables import numbered_rows
from utils.core import languages
from utils.xtts.language_packs import TextMode, coqui_cleaners
from utils.xtts.tokenizer import Tokenizer
from utils.xtts.vocabulary import SPACE, Vocabulary

if TYPE_CHECKING:
    from torch import Tensor

RULES = Path(__file__).parent / "data" / "portable_rules.tsv"
ALIASES = "hi ar ko cs hu pl tr ru nl pt it fr de es en".split()  # tried in this order
TEXT_ROWS = ("text_embedding.weight", "text_head.weight", "text_head.bias")  # of the GPT, one row a token
DIGITS = re.compile(r"[\d%&+$€]")  # other programs read them in the language of the alias, or refuse them
SIGNS = "+=<>€¥§±‰$№"  # that are read as words
PUNCTUATION = "።፣፤፥፦፧፨፠…–—"
NUMERALS = "፩፪፫፬፭፮፯፰፱፲፳፴፵፶፷፸፹፺፻፼"
ETHIOPIC = "[\u1200-\u137f]"
PASSES = 3  # each decides one or two consonants of a run; runs longer than six are not Amharic

PLAIN = {code: chr(0xA500 + place) for place, code in enumerate(CONSONANTS.values())}
LABIAL = {code: chr(0xA530 + place) for place, code in enumerate(CONSONANTS.values())}
SHORT = "\ua5f0"
LONG = "\ua5f1"
VOWEL = {code: chr(0xA5C0 + place) for place, code in enumerate(VOWELS.values())}
HEARD = VOWEL["I"]
UNDECIDED = "\ua5d0"  # no vowel is written
# None is heard; after a coda it is still open whether the next consonant needs one.
CODA = "\ua5d1"
CLOSED = "\ua5d2"
ANY = "[\ua500-\ua55f]"
LENGTH = f"[{SHORT}{LONG}]"
END = "(?![\ua500-\ua55f])"
SLOT = ANY + LENGTH
SOME_VOWEL = f"[{''.join(VOWEL.values())}]"
NO_VOWEL = f"[{UNDECIDED}{CODA}{CLOSED}{HEARD}]"  # as it is written
WHATEVER = f"[{''.join(VOWEL.values())}{UNDECIDED}{CODA}{CLOSED}]"
AFTER = f"[{''.join(VOWEL.values())}{CLOSED}]"  # where the next consonant is decided

Rule = dict[str, Any]
Slot = tuple[str, str, str]  # the codes of a consonant and its vowel, with "W" between them if it is labialised


def alias_of(tokenizer: Tokenizer) -> str:
    """Return the language under which other programs can speak a model; empty if it needs none or there is none."""
    settings = tokenizer.settings
    if settings is None or settings.language != languages.AMHARIC.code:
        return ""
    pack = tokenizer.pack(settings.language)
    texts = (tokenizer.tokenize(DIGITS.sub("", sample), settings.language).model_text for sample in pack.samples)
    return find_alias(tokenizer.vocabulary, texts)


def find_alias(vocabulary: Vocabulary, spelled: Iterable[str]) -> str:
    """Return the language of coqui whose cleaners change nothing in texts of our spelling; empty if there is none."""
    texts = list(spelled)
    cleaners = coqui_cleaners()
    for code in ALIASES:
        has_row = languages.find(code).token in vocabulary.ids
        if has_row and all(cleaners.preprocess_text(text, code) == text for text in texts):
            return code
    return ""


def with_alias(state: Mapping[str, "Tensor"], vocabulary: Vocabulary, language: str, alias: str) -> dict[str, "Tensor"]:
    """Return weights in which the row of one language also stands at another, whose own row is lost."""
    source, target = (vocabulary.ids[languages.find(code).token] for code in (language, alias))
    changed = dict(state)
    for name in (name for name in state if name.endswith(TEXT_ROWS)):
        changed[name] = state[name].clone()
        changed[name][target] = state[name][source]
    return changed


def portable(tokenizer: Tokenizer) -> Tokenizer:
    """Return a tokenizer whose vocabulary file reads Ethiopic letters in any program; its own ids stay the same."""
    if tokenizer.settings is None:
        return tokenizer
    vocabulary = with_normalizer(tokenizer.vocabulary, tokenizer.mode, tokenizer.settings.overrides)
    return Tokenizer(vocabulary, tokenizer.settings.model_copy(update={"vocabulary": vocabulary.hash}))


def with_normalizer(vocabulary: Vocabulary, mode: TextMode, pronunciations: Mapping[str, str]) -> Vocabulary:
    """Return a vocabulary that reads Ethiopic letters in any program.

    Those programs write [SPACE] for a space. It is normalized like the rest, so that rules see whole sentences.
    """
    letters = fidel_rules() if mode == "fidel" else spelling_rules(mode, pronunciations, learned_rules())
    marks = [token for token in vocabulary.ids if len(token) == 1 and not token.isalnum()]
    rules = [_literal(SPACE, " "), *mark_rules(marks), *letters, _literal(" ", SPACE)]
    added = [token | {"normalized": token["content"] == SPACE} for token in vocabulary.data["added_tokens"]]
    changes = {"added_tokens": added, "normalizer": {"type": "Sequence", "normalizers": rules}}
    return Vocabulary({**vocabulary.data, **changes}, vocabulary.source)


def learned_rules() -> list[tuple[str, ...]]:
    """Return the rules of length and ɨ that ``tools/portable_rules.py`` learned from our own front end."""
    return [cells for _, cells in numbered_rows(RULES, 5)]


def mark_rules(known: Iterable[str]) -> Iterator[Rule]:
    """Read marks as the front end does, and leave out what the vocabulary lacks: no language could read it."""
    yield _pattern(r"\p{C}", "")
    yield _pattern("፡ ?፡", "።")
    yield _literal("፡", " ")
    yield _pattern("፲(?=[፩-፱])", " አስራ")
    yield from (_literal(numeral, f" {normalize(numeral)}") for numeral in NUMERALS)
    for sign in SIGNS:
        yield _pattern(
            rf"(?<={ETHIOPIC}|{ETHIOPIC} ){re.escape(sign)}|{re.escape(sign)}(?= ?{ETHIOPIC})", f" {normalize(sign)} "
        )
    yield from (_literal(mark, normalize(mark)) for mark in PUNCTUATION)
    yield _pattern(rf"(?<={ETHIOPIC})[/-](?={ETHIOPIC})", " ")
    unknown = rf"[^\p{{L}}\p{{M}}\p{{N}}\s{re.escape(''.join(sorted(known)))}]+"
    yield _pattern(rf"(?<=\w){unknown}(?=\w)", " ")
    yield _pattern(unknown, "")
    yield _pattern(rf"(?<={ETHIOPIC}) +(?=[,.;:?!])", "")
    yield _pattern(rf"(?<={ETHIOPIC})\.{{2,}}", ".")
    yield _pattern(" {2,}", " ")


def fidel_rules() -> Iterator[Rule]:
    """A model of the letters themselves knows one of those that sound alike."""
    yield from (_literal(letter, fold(letter)) for letter in values() if fold(letter) != letter)


def spelling_rules(
    mode: TextMode, pronunciations: Mapping[str, str], learned: Sequence[Sequence[str]]
) -> Iterator[Rule]:
    """Yield the replacements in order: words of the project, letters, length, ɨ, spelling."""
    for word, said in pronunciations.items():
        yield _pattern(rf"\b{word}\b", _spell(phonemize(word, overrides={word: said}), mode))
    for letter in values():
        yield _literal(letter, "".join(map(write_slot, slots(letter))))
    yield _pattern(f"{SHORT}(?={WHATEVER}\u135f)", LONG)  # marked by hand
    yield _pattern("[\u135d-\u135f]", "")
    yield from (learned_rule(rule) for rule in learned if rule[0] == "length")
    yield from vowel_rules()
    yield from (learned_rule(rule) for rule in learned if rule[0] == "vowel")
    yield from output_rules(mode)


def slots(letter: str) -> list[Slot]:
    """Return the slots of a letter: most have one, ፘ rja has two."""
    found = []
    for code in values()[letter]:
        if code in PLAIN:
            found.append((code, "", ""))
        else:
            consonant, labial, _ = found[-1]
            found[-1] = (consonant, "W", "") if code == "W" else (consonant, labial, code)
    return found


def write_slot(slot: Slot) -> str:
    consonant, labial, vowel = slot
    return (LABIAL if labial else PLAIN)[consonant] + SHORT + (VOWEL[vowel] if vowel else UNDECIDED)


def learned_rule(rule: Sequence[str]) -> Rule:
    """Turn a learned rule into a replacement.

    Its contexts are slots such as ``bE`` between ``|``, with a dot for anything and 0 for no vowel; ^ and $ are the
    ends of a word, and ∅ is no context. Its own slot is that whose length or vowel changes.
    """
    kind, left, own, right, value = rule
    consonant, vowel = _context(own)
    before = "".join(map(_slot_pattern, left.split("|")))
    after = "".join(map(_slot_pattern, right.split("|")))
    if kind == "length":
        old, new = (SHORT, LONG) if value == "long" else (LONG, SHORT)
        return _pattern(f"(?<={before}{consonant}){old}(?={vowel}{after})", new)
    old, new = (f"[{CODA}{CLOSED}]", HEARD) if value == "ɨ" else (HEARD, CLOSED)
    return _pattern(f"(?<={before}{consonant}{LENGTH}){old}(?={after})", new)


def vowel_rules() -> Iterator[Rule]:
    """Decide where ɨ is heard as ``amharic.syllables`` does, from left to right over each run of consonants."""
    yield _pattern(rf"(?<=\b{SLOT}){UNDECIDED}", HEARD)  # a word never begins with two consonants
    for _ in range(PASSES):
        yield _pattern(f"(?<={AFTER}{SLOT}){UNDECIDED}{END}", CLOSED)
        yield from _never_meeting()
        yield _after_vowel(ANY, SLOT + SOME_VOWEL, CLOSED)  # two between vowels part
        yield _after_vowel(ANY, SLOT + UNDECIDED + ANY + LONG, CODA)
        yield from _parting()
        yield from _codas()
        yield _after_vowel(ANY, ANY, HEARD)
        yield from _after_coda()


def _never_meeting() -> Iterator[Rule]:
    """Break up two consonants that never meet."""
    yield _after_vowel(ANY, ANY, HEARD, LONG)
    yield _after_vowel(ANY, ANY + LONG, HEARD)
    yield _after_vowel(_either("Hh"), ANY, HEARD)
    yield _between((code * 2 for code in PLAIN), HEARD)


def _parting() -> Iterator[Rule]:
    """Break up, of more than two consonants or two at the end of a word, what is not said together."""
    tight = _clusters(TIGHT)
    yield _after_vowel(_either(code for code in PLAIN if code not in "wy"), tight, HEARD)
    yield _after_vowel(_either("wy"), f"{tight}{LENGTH}(?:{SOME_VOWEL}|{UNDECIDED}{END})", HEARD)
    yield _after_vowel(_either("rlmn"), _clusters(NASAL), HEARD)
    yield _after_vowel(ANY, _either("Hh") + LENGTH + UNDECIDED + END, HEARD)
    for pair in sorted(SUFFIXED):
        yield _after_vowel(PLAIN[pair[0]], PLAIN[pair[1]] + LENGTH + UNDECIDED + END, HEARD)
    for level in sorted({SONORITY[code] for code in PARTING}):
        equals = _either(code for code in sorted(PARTING) if SONORITY[code] == level)
        yield _after_vowel(equals, equals + LENGTH + UNDECIDED, HEARD)


def _codas() -> Iterator[Rule]:
    """Let a consonant close its syllable before a cluster, or before one that is not the more sonorous."""
    yield _after_vowel(_either("y"), _clusters(NASAL), CLOSED)
    yield _after_vowel(_either("w"), _clusters(TIGHT), CLOSED)
    yield _between(sorted(WITH_S), CODA)
    for level in sorted(set(SONORITY.values())):
        first = _either(code for code in PLAIN if SONORITY[code] == level)
        second = _either(code for code in PLAIN if SONORITY[code] <= level)
        yield _after_vowel(first, second + LENGTH + UNDECIDED, CODA)


def _after_coda() -> Iterator[Rule]:
    yield _pattern(f"(?<={CODA}{SLOT}){UNDECIDED}{END}", CLOSED)
    yield _pattern(f"(?<={PLAIN['k']}{LENGTH}{CODA}{PLAIN['s']}{LENGTH}){UNDECIDED}", CLOSED)
    yield _pattern(f"(?<={CODA}{SLOT}){UNDECIDED}(?={ANY})", HEARD)


def output_rules(mode: TextMode) -> Iterator[Rule]:
    """Write slots in the letters of the model; a glottal stop that begins a word is not written."""
    yield _pattern(rf"\b{PLAIN['H']}{LENGTH}", "")
    for phone, code in CONSONANTS.items():
        for length, written in ((SHORT, phone), (LONG, f"{phone}ː")):
            yield _literal(PLAIN[code] + length, _spell(written, mode))
            yield _literal(LABIAL[code] + length, _spell(f"{written}w", mode))
    yield from (_literal(VOWEL[code], _spell(phone, mode)) for phone, code in VOWELS.items())
    yield _pattern(f"[{UNDECIDED}{CODA}{CLOSED}]", "")


def _spell(phones: str, mode: TextMode) -> str:
    return to_latin(phones) if mode == "latin" else phones


def _slot_pattern(part: str) -> str:
    ends = {"": "", "∅": "", "^": r"\b", "$": END}
    return ends[part] if part in ends else LENGTH.join(_context(part))


def _context(part: str) -> tuple[str, str]:
    """Return the patterns of the consonant and the vowel of a slot in a learned rule."""
    consonant = part[:-1]
    vowel = part[-1]
    letters = LABIAL if consonant.endswith("W") else PLAIN
    return letters.get(consonant.removesuffix("W"), ANY), {".": WHATEVER, "0": NO_VOWEL}.get(vowel) or VOWEL[vowel]


def _after_vowel(first: str, ahead: str, decided: str, length: str = LENGTH) -> Rule:
    """Decide what follows a consonant after a vowel, by the consonants ahead."""
    return _pattern(f"(?<={AFTER}{first}{length}){UNDECIDED}(?={ahead})", decided)


def _between(pairs: Iterable[str], decided: str) -> Rule:
    sites = (f"(?<={AFTER}{PLAIN[pair[0]]}{LENGTH}){UNDECIDED}(?={PLAIN[pair[1]]})" for pair in pairs)
    return _pattern("|".join(sites), decided)


def _clusters(pairs: Iterable[str]) -> str:
    """Return a pattern of any of these pairs of consonants."""
    both = (f"{_either(pair[0])}{LENGTH}{UNDECIDED}{_either(pair[1])}" for pair in sorted(pairs))
    return f"(?:{'|'.join(both)})"


def _either(codes: Iterable[str]) -> str:
    """Return a class of consonants, plain or labialised."""
    return f"[{''.join(PLAIN[code] + LABIAL[code] for code in codes)}]"


def _literal(old: str, new: str) -> Rule:
    return {"type": "Replace", "pattern": {"String": old}, "content": new}


def _pattern(old: str, new: str) -> Rule:
    return {"type": "Replace", "pattern": {"Regex": old}, "content": new}
