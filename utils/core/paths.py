"""The names of folders and files on disk, and the rule that nothing leaves the project folders."""

import re
from dataclasses import dataclass
from pathlib import Path

from utils.core.errors import StorageError

ROOT = Path(__file__).resolve().parent.parent.parent
OUTPUT = ROOT / "output"
CONFIGS = ROOT / "configs"
REQUIREMENTS = ROOT / "requirements.txt"
MODELS = OUTPUT / ".models"  # one folder a published version
SETTINGS = OUTPUT / ".settings"  # what a person chose or this machine was measured at
LICENCE_CONSENT = SETTINGS / "licence-consent.json"
PRECISIONS = SETTINGS / "precision.json"  # how fast each is here
VOICES = OUTPUT / ".cache" / "voices"  # what was heard of references
TINY_VOICE = OUTPUT / ".tiny-voice"  # where the embedded voice is made
TINY_MODEL = ROOT / "utils" / "xtts" / "data" / "tiny"  # where it is kept
UPLOADS = OUTPUT / ".uploads"  # what visitors of the page sent, and what it made for them to download

RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # names that Windows keeps for devices
MAX_NAME_BYTES = 200  # systems allow 255, and what is deleted or half written gets a longer name for a while
ALLOWED = re.compile(r"[\w][\w .-]{0,63}")


@dataclass(frozen=True)
class Project:
    """A folder that holds dataset/, runs/ and ready/."""

    root: Path

    @property
    def dataset(self) -> Path:
        """Return the folder of clips and their lists."""
        return self.root / "dataset"

    @property
    def runs(self) -> Path:
        """Return the folder that holds one folder a run."""
        return self.root / "runs"

    @property
    def ready(self) -> Path:
        """Return the folder of the finished model."""
        return self.root / "ready"

    @property
    def exports(self) -> Path:
        """Return the folder of what was packed for others; all of it can be made again."""
        return self.root / "exports"


def project(name: str, output: Path = OUTPUT) -> Project:
    """Name a project below the output folder."""
    return Project(resolve_inside(output, validate_name(name)))


def list_projects(output: Path = OUTPUT) -> list[str]:
    """List the projects by name."""
    if not output.is_dir():
        return []
    return sorted(path.name for path in output.iterdir() if path.is_dir() and not path.name.startswith("."))


def validate_name(name: object) -> str:
    """Return a name that is safe as a folder on every system, or say what is wrong with it."""
    name = name.strip() if isinstance(name, str) else ""  # programs may send the page anything
    too_long = len(name.encode(errors="replace")) > MAX_NAME_BYTES
    if not ALLOWED.fullmatch(name) or RESERVED.fullmatch(name) or name.endswith(".") or too_long:
        raise StorageError(
            f"{name!r} cannot be a folder name.",
            hint="Begin with a letter or digit; then up to 63 letters (Ethiopic too), digits, spaces or any of . _ -",
        )
    return name


def resolve_inside(folder: Path, *parts: str | Path) -> Path:
    """Join a path and refuse it when it leaves the folder, through '..' or a link either."""
    base = folder.resolve()
    path = base.joinpath(*parts).resolve()
    if not path.is_relative_to(base):
        raise StorageError(f"{path} lies outside {base}.", hint="Choose a file inside the project folder.")
    return path
