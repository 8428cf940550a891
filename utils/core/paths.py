"""Where the files of the program are, and the rule that nothing leaves the folder that it must stay in."""

import os
import re
from pathlib import Path

from utils.core.errors import NameNotAllowedError, OutsideFolderError

ROOT = Path(__file__).resolve().parents[2]  # holds the package: a checkout, or site-packages
HOME_VARIABLE = "AMHARIC_XTTS_HOME"  # of the folder that holds ``output``
IS_CHECKOUT = (ROOT / "xtts_demo.py").is_file()
SAMPLE_SPEECH = ROOT / "utils" / "studio" / "data" / "sample.ogg"  # of the sample project
TINY_MODEL = ROOT / "utils" / "xtts" / "data" / "tiny"  # the embedded model

RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # device names on Windows
MAX_NAME_BYTES = 200  # systems allow 255; temporary names are longer
ALLOWED = re.compile(r"[\w][\w .-]{0,63}")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def validate_name(name: object) -> str:
    """Return a name that is safe as a folder on every system."""
    name = name.strip(" ") if isinstance(name, str) else ""  # API clients may send anything
    too_long = len(name.encode(errors="replace")) > MAX_NAME_BYTES
    if not ALLOWED.fullmatch(name) or RESERVED.fullmatch(name) or name.endswith(".") or too_long:
        raise NameNotAllowedError(name)
    return name


def expand_home(name: str) -> Path:
    """Replace a leading ~ by the home folder; it stays where there is no such user, or the user has no folder."""
    try:
        return Path(os.path.expanduser(name))  # noqa: PTH111  # Path.expanduser raises RuntimeError instead
    except ValueError:  # no user is named so: a zero byte, half of a surrogate pair
        return Path(name)


def require_one_line(path: str | Path) -> None:
    """Refuse line breaks and other control characters, which split lists and steer terminals."""
    if CONTROL.search(str(path)):
        raise NameNotAllowedError(str(path))


def resolve_inside(folder: Path, *parts: str | Path) -> Path:
    """Join paths and refuse a result outside the folder, also through '..' or a link."""
    for part in parts:
        require_one_line(part)
    base = folder.resolve()
    path = base.joinpath(*parts).resolve()
    if not path.is_relative_to(base):
        raise OutsideFolderError(path, base)
    return path
