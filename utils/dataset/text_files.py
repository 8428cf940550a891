"""Text files in any encoding: UTF-8, UTF-16, Windows code pages, and text that was decoded with the wrong one."""

import codecs
import re
import unicodedata
from pathlib import Path
from typing import NamedTuple

from utils.core.errors import DataError

BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # starts like UTF-16, so it is tried first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
MAX_BYTES = 200_000_000  # the text of 10,000 hours is far smaller
REPLACEMENT = "\ufffd"

# The characters of cp1252 by their bytes; its five unassigned bytes are themselves, as in browsers.
CP1252 = {byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0x100)}
# The bytes of these characters, and of C1 controls: Latin-1 has them where cp1252 has letters.
CP1252_BYTES = {chr(byte): byte for byte in CP1252} | {character: byte for byte, character in CP1252.items()}
CP1252_RUN = re.compile("[" + re.escape("".join(CP1252_BYTES)) + "]{2,}")
UTF8_CHARACTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
# What is left of an Ethiopic character (bytes E1 88..8D, E2 B6/B7, EA AC) if one of its three bytes is lost.
BROKEN_CHARACTER = re.compile("á[ˆ‰Š‹Œ\x88-\x8d]|â[¶·]|ê¬")


class DecodedText(NamedTuple):
    """The text of a file, and a warning for everything that was repaired or lost."""

    text: str
    warnings: tuple[str, ...] = ()


def read_any_encoding(path: Path) -> DecodedText:
    """Read a text file with newlines as line ends, and repair wrongly decoded text."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DataError(f"{path} is larger than {MAX_BYTES // 1_000_000} MB, too large for a list or subtitles.")
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.", hint="Check its name and permissions.") from error
    decoded = _decode(raw)
    text, warnings = decoded.text, decoded.warnings
    for _ in range(3):  # text can be decoded wrongly several times in a row
        text = CP1252_RUN.sub(_repair_run, text)
    if text != decoded.text:
        warnings += ("The characters had been decoded wrongly (such as áˆ° for ሰ) and were repaired.",)
    return DecodedText(text.replace("\r\n", "\n").replace("\r", "\n"), warnings)


def name_key(name: str) -> str:
    """Return a file name without differences in case and Unicode form."""
    return unicodedata.normalize("NFC", name).casefold()


def is_garbled(text: str) -> bool:
    """Return whether characters are lost: replacement marks, parts of characters, or mostly question marks."""
    questions = text.count("?")
    lost = REPLACEMENT in text or BROKEN_CHARACTER.search(text)
    return bool(lost) or (questions >= 3 and questions * 2 > len("".join(text.split())))


def _decode(raw: bytes) -> DecodedText:
    """Decode by the byte order mark, as UTF-8, as UTF-16 without a mark, or else as cp1252."""
    for mark, name in BOMS:
        if raw.startswith(mark):
            return _decode_lossy(raw, name)
    if b"\0" in raw[:4096]:
        # the zero bytes of ASCII characters, which every list and subtitle file has, show the byte order
        even = raw[0:4096:2].count(0)
        return _decode_lossy(raw, "utf-16-be" if even > raw[1:4096:2].count(0) else "utf-16-le")
    decoded = _decode_lossy(raw, "utf-8")
    is_utf8 = decoded.text.encode() == raw
    if is_utf8 or decoded.text.count(REPLACEMENT) < len(UTF8_CHARACTER.findall(raw)):  # apart from a few damaged bytes
        return decoded
    text = "".join(CP1252.get(byte, chr(byte)) for byte in raw)
    return DecodedText(text, ("It is not UTF-8 and was read as Windows-1252. Save it as UTF-8 to be sure.",))


def _decode_lossy(raw: bytes, encoding: str) -> DecodedText:
    text = raw.decode(encoding, "replace").removeprefix("\ufeff")
    lost = text.count(REPLACEMENT)
    return DecodedText(text, (f"{lost} damaged characters could not be read as {encoding.upper()}.",) if lost else ())


def _repair_run(run: re.Match[str]) -> str:
    """Decode the UTF-8 characters in a run of cp1252 characters, and leave the others."""
    parts, end = [], 0
    for match in UTF8_CHARACTER.finditer(bytes(CP1252_BYTES[character] for character in run[0])):
        try:
            decoded = match[0].decode("utf-8")
        except UnicodeDecodeError:
            decoded = run[0][match.start() : match.end()]
        parts += [run[0][end : match.start()], decoded]
        end = match.end()
    return "".join([*parts, run[0][end:]])
