"""Latin words, acronyms and addresses, written in fidel as Amharic speakers say them."""

import re
import unicodedata

from utils.amharic.alphabet import ETHIOPIC
from utils.amharic.numbers import joined_before, joined_behind
from utils.amharic.tables import mapping

LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
WORD = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+(?:['’-][A-Za-z\u00c0-\u024f\u1e00-\u1eff]+)*")
ADDRESS = re.compile(
    r"(?<![\w@.])(?:https?://|www\.)[\x21-\x7e]{1,2000}|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}",
    re.ASCII,
)
DOMAIN = re.compile(
    r"(?<![\w.])[a-z0-9-]{2,64}(?:\.[a-z0-9-]{2,64}){0,5}\.(?:com|org|net|gov|edu|info|et)(?![\w])", re.IGNORECASE
)
INITIALS = re.compile(r"(?<![A-Za-z])(?:(?:[A-Z]\.){2,8}|[AaPp]\.[Mm]\.)")  # U.S.A., P.O., a.m.
CAMEL = re.compile("(?<=[a-z])(?=[A-Z])")
LONGEST_PREFIX = 5
PREFIXED = re.compile(rf"(?:^|[^{ETHIOPIC}])([{ETHIOPIC}]{{1,4}})$")
ENDED = re.compile(rf"[{ETHIOPIC}]{{1,4}}(?![{ETHIOPIC}])")
SIGNS = {".": "ነጥብ", "@": "አት", "/": "ስላሽ", ":": "", "-": "ሰረዝ", "_": "ሰረዝ"}
SPELLED = 5  # capital letters up to which an unknown word is read letter by letter
VOWEL = re.compile("[aeiouy]")
CLITIC = re.compile(r"(?<=[A-Za-z])[’'](?=[sS]\b)")
# the plain consonants of English spelling, by the first letter of their fidel row; two letters before one
CONSONANTS = {
    "sch": "ሸ", "tch": "ቸ", "sh": "ሸ", "ch": "ቸ", "th": "ተ", "ph": "ፈ", "kh": "ከ", "gh": "ገ", "ck": "ከ", "qu": "ከ",
    "ng": "ነገ", "zh": "ዠ", "wh": "ወ", "kn": "ነ", "ts": "ጸ", "ny": "ኘ", "b": "በ", "c": "ከ", "d": "ደ", "f": "ፈ", "g": "ገ",
    "h": "ኸ", "j": "ጀ", "k": "ከ", "l": "ለ", "m": "መ", "n": "ነ", "p": "ፐ", "q": "ቀ", "r": "ረ", "s": "ሰ", "t": "ተ",
    "v": "ቨ", "w": "ወ", "x": "ከሰ", "y": "የ", "z": "ዘ",
}  # fmt: skip
VOWELS = {
    "ee": 2, "ea": 2, "ie": 2, "oo": 1, "ou": 1, "ai": 4, "ay": 4, "ei": 4, "au": 6, "oa": 6,
    "a": 3, "e": 4, "i": 2, "o": 6, "u": 1,
}  # fmt: skip
PIECE = re.compile("|".join(sorted([*CONSONANTS, *VOWELS], key=len, reverse=True)))
ALONE = "አኡኢአኤእኦ"  # a vowel with no consonant before it, by its order
BARE = 5  # the order of a consonant without a vowel


def spell_latin(text: str) -> str:
    """Write every Latin word, acronym and address of a text in fidel."""
    if not LATIN.search(text):
        return text
    text = ADDRESS.sub(lambda match: spell_address(match[0]), text)
    text = DOMAIN.sub(lambda match: spell_address(match[0]), text)
    text = INITIALS.sub(lambda match: match[0].replace(".", "") + " ", CLITIC.sub("", text))
    return WORD.sub(_spell_here, text)


def _spell_here(match: re.Match[str]) -> str:
    """Say a word where it stands: a prefix before it and an ending behind it stay attached (በFacebookን)."""
    before = PREFIXED.search(match.string, max(0, match.start() - LONGEST_PREFIX), match.start())
    attached = before and before[1] in joined_before()
    behind = ENDED.match(match.string, match.end())
    ended = behind and behind[0] in joined_behind()
    return f"{'' if attached else ' '}{spell_word(match[0])}{'' if ended else ' '}"


def spell_address(address: str) -> str:
    """Read a link or an e-mail address aloud: its words, and its signs by name."""
    address = re.sub(r"^https?://", "", address).rstrip("/.,;:!?)")
    pieces = re.findall(r"[A-Za-z]+|[0-9]+|.", address)
    return " " + " ".join(SIGNS.get(piece, piece) for piece in pieces if piece.isalnum() or piece in SIGNS) + " "


def spell_word(word: str) -> str:
    """Say one Latin word: from the list, letter by letter, or by its sounds."""
    plain = unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode()
    if known := mapping("latin_words.tsv").get(plain.lower()):
        return known
    parts = [part for part in re.split("['-]", CAMEL.sub("-", plain)) if part]
    if parts != [plain]:
        return "".join(f" {spell_word(part)}" for part in parts).strip()
    if len(plain) == 1 or (plain.isupper() and len(plain) <= SPELLED) or not VOWEL.search(plain.lower()):
        return " ".join(mapping("letter_names.tsv")[letter] for letter in plain.upper())
    return transliterate(plain.lower())


def transliterate(word: str) -> str:
    """Write a word in fidel by its letters, a consonant and the vowel behind it in one letter."""
    if len(word) > 3 and word[-1] == "e" and word[-2] not in "aeiou":  # the silent e of "page" and "nike"
        word = word[:-1]
    written = ""
    open_end = False  # whether the last letter still waits for its vowel
    for piece in PIECE.findall(word):
        if piece in VOWELS:
            order = VOWELS[piece]
            written = written[:-1] + chr(ord(written[-1]) - BARE + order) if open_end else written + ALONE[order]
            open_end = False
            continue
        letters = "".join(chr(ord(letter) + BARE) for letter in CONSONANTS[piece])
        if not (open_end and written[-1] == letters[-1]):  # a doubled consonant is written once
            written += letters
            open_end = True
    return written
