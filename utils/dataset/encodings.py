"""Text files as people have them: UTF-8, UTF-16, Windows code pages, and text that went through the wrong one."""

import codecs
import re
from dataclasses import dataclass
from pathlib import Path

from utils.core.errors import DataError

BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins like UTF-16, so it is asked first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
LARGEST = 200_000_000  # bytes; a text of 10 000 hours stays far below
REPLACED = "\ufffd"


def _western_bytes() -> dict[str, int]:
    """Map each letter of cp1252 to its byte; the five bytes without a letter stand for themselves, as in browsers."""
    unassigned = {chr(byte): byte for byte in range(0x80, 0x100)}
    letters = {bytes([byte]).decode("cp1252", "ignore"): byte for byte in range(0x80, 0x100)}
    return unassigned | {letter: byte for letter, byte in letters.items() if letter}


WESTERN = _western_bytes()
WESTERN_RUN = re.compile("[" + re.escape("".join(WESTERN)) + "]{2,}")
UTF8_LETTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
# What is left of an Ethiopic letter (bytes E1 88..8D, E2 B6/B7, EA AC) when one of its three bytes is lost.
BROKEN_LETTER = re.compile("á[ˆ‰Š‹Œ\x88-\x8d]|â[¶·]|ê¬")


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a file, and what had to be done to read it."""

    text: str
    warnings: tuple[str, ...] = ()


def read_any(path: Path) -> Text:
    """Read a text file whatever its encoding, with line ends as newlines and wrongly decoded letters mended."""
    try:
        if path.stat().st_size > LARGEST:
            raise DataError(f"{path} is larger than {LARGEST // 1_000_000} MB: that is no list and no subtitle.")
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.", hint="Check the name and your rights.") from error
    decoded = decode(raw)
    mended = mend(decoded.text)
    return Text(mended.text.replace("\r\n", "\n").replace("\r", "\n"), decoded.warnings + mended.warnings)


def decode(raw: bytes) -> Text:
    """Decode bytes: by their mark, as UTF-8, as UTF-16 without a mark, or else as a Western code page."""
    for mark, name in BOMS:
        if raw.startswith(mark):
            return _with_losses(raw, name)
    if b"\0" in raw[:4096]:
        # ASCII letters, which every list and subtitle has, keep their zero byte on the side of the byte order
        even = raw[0:4096:2].count(0)
        return _with_losses(raw, "utf-16-be" if even > raw[1:4096:2].count(0) else "utf-16-le")
    return _with_losses(raw, "utf-8") if _mostly_utf8(raw) else _as_western(raw)


def mend(text: str) -> Text:
    """Turn UTF-8 that was read as Latin-1 or cp1252 back into what was written, where that can be done."""
    mended, rounds = text, 0
    while rounds < 3 and (better := WESTERN_RUN.sub(_mended_run, mended)) != mended:
        mended, rounds = better, rounds + 1
    if not rounds:
        return Text(text)
    return Text(mended, ("The letters had been decoded wrongly (such as áˆ° for ሰ) and were mended.",))


def is_garbled(text: str) -> bool:
    """Tell whether letters are lost for good: replacement marks, halves of letters, or question marks throughout."""
    letters = [letter for letter in text if not letter.isspace()]
    questions = letters.count("?")
    return REPLACED in text or bool(BROKEN_LETTER.search(text)) or (questions >= 3 and questions * 2 > len(letters))


def _mended_run(run: re.Match[str]) -> str:
    raw = bytes(WESTERN[letter] for letter in run[0])
    pieces, end = [], 0
    for letter in UTF8_LETTER.finditer(raw):
        pieces += [run[0][end : letter.start()], _decoded_letter(letter[0], run[0][letter.start() : letter.end()])]
        end = letter.end()
    return "".join([*pieces, run[0][end:]])


def _decoded_letter(raw: bytes, written: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return written


def _mostly_utf8(raw: bytes) -> bool:
    """Tell whether the bytes are UTF-8, a few damaged ones aside."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace").count(REPLACED) < len(UTF8_LETTER.findall(raw))
    return True


def _with_losses(raw: bytes, encoding: str) -> Text:
    text = raw.decode(encoding, "replace").removeprefix("\ufeff")
    lost = text.count(REPLACED)
    return Text(text, (f"{lost} damaged letters could not be read as {encoding.upper()}.",) if lost else ())


def _as_western(raw: bytes) -> Text:
    letters = {byte: letter for letter, byte in WESTERN.items()}  # the letters of cp1252 come last and win
    text = "".join(chr(byte) if byte < 0x80 else letters[byte] for byte in raw)
    return Text(text, ("It is not UTF-8 and was read as a Western code page (cp1252); save it as UTF-8 to be sure.",))
