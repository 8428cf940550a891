"""Latin words, acronyms and addresses, written in fidel as Amharic speakers say them; English by its sounds."""

import re
import unicodedata

from utils.amharic.alphabet import ETHIOPIC
from utils.amharic.english import say_english
from utils.amharic.numbers import joined_before, joined_behind
from utils.amharic.tables import mapping

LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
WORD = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+(?:['’-][A-Za-z\u00c0-\u024f\u1e00-\u1eff]+)*")
ADDRESS = re.compile(
    r"(?<![\w@.])(?:https?://|www\.)[\x21-\x7e]{1,2000}|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}",
    re.ASCII,
)
DOMAIN = re.compile(
    r"(?<![a-z0-9_.-])(?:(?:[a-z0-9-]{1,64}\.){0,6}[a-z0-9-]{2,64}\.(?:com|org|net|gov|edu|info|et)|(?:t|wa)\.me|bit\.ly"
    r"|youtu\.be)(?![a-z0-9_])(?:/[a-z0-9_-]{1,64}(?:\.[a-z0-9_-]{1,64}){0,3}){0,8}",
    re.IGNORECASE,
)
COUNTRY = re.compile(r"\.[a-z]{2}(?=/|$)")
INITIALS = re.compile(r"(?<![A-Za-z])(?:(?:[A-Z]\.){2,8}|[AaPp]\.[Mm]\.)")  # U.S.A., P.O., a.m.
CAMEL = re.compile("(?<=[a-z])(?=[A-Z])")
LONGEST_PREFIX = 5
PREFIXED = re.compile(rf"(?:^|[^{ETHIOPIC}])([{ETHIOPIC}]{{1,4}})$")
ENDED = re.compile(rf"[{ETHIOPIC}]{{1,4}}(?![{ETHIOPIC}])")
SIGNS = {".": "ነጥብ", "@": "አት", "/": "ስላሽ", ":": "", "-": "ሰረዝ", "_": "ሰረዝ"}
SPELLED = 5  # capital letters up to which an unknown word is read letter by letter
SHORTEST_WORD = 3  # capital letters up to which an English word is an acronym
PLURAL = re.compile("[A-Z]{2,5}s")  # NGOs
VOWEL = re.compile("[aeiouy]")
CLITIC = re.compile(r"(?<=[A-Za-z])[’'](?=[sS]\b)")


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
    address = COUNTRY.sub(lambda match: match[0].upper(), address)  # spelled: ኢ ቲ
    pieces = re.findall(r"[A-Za-z]+|[0-9]+|.", address)
    return " " + " ".join(SIGNS.get(piece, piece) for piece in pieces if piece.isalnum() or piece in SIGNS) + " "


def spell_word(word: str) -> str:
    """Say one Latin word: from the lists, letter by letter, or by its sounds in English."""
    plain = unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode()
    if known := _listed(plain):
        return known
    parts = [part for part in CAMEL.sub("-", plain.replace("'", "")).split("-") if part]
    if parts != [plain]:
        return "".join(f" {spell_word(part)}" for part in parts).strip()
    if PLURAL.fullmatch(plain):
        return f"{_spell_letters(plain[:-1])}ስ"
    if len(plain) == 1 or (plain.isupper() and len(plain) <= SPELLED) or not VOWEL.search(plain.lower()):
        return _spell_letters(plain)
    return say_english(plain)


def _listed(plain: str) -> str | None:
    """Look a word up; US and IT are acronyms, us and it are words."""
    names, small = mapping("latin_words.tsv"), plain.lower()
    is_acronym = plain.isupper() and len(plain) <= SHORTEST_WORD
    return names.get(plain) or names.get(small) or (None if is_acronym else mapping("english_words.tsv").get(small))


def _spell_letters(plain: str) -> str:
    return " ".join(mapping("letter_names.tsv")[letter] for letter in plain.upper())
