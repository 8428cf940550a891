"""Where everything is on disk, and the rule that nothing leaves the project folders."""

import re
from dataclasses import dataclass
from pathlib import Path

from utils.core.errors import NameNotAllowedError, OutsideFolderError

ROOT = Path(__file__).resolve().parent.parent.parent
OUTPUT = ROOT / "output"
CONFIGS = ROOT / "configs"
REQUIREMENTS = ROOT / "requirements.txt"
CONSTRAINTS = ROOT / "constraints.txt"
MODELS = OUTPUT / ".models"  # one folder per published version
SETTINGS = OUTPUT / ".settings"  # user choices and measurements of this machine
LICENCE_CONSENT = SETTINGS / "licence-consent.json"
GPU_CERTIFICATE = SETTINGS / "gpu-certificate.json"  # what was tested on the GPU; beside it as .md
PRECISIONS = SETTINGS / "precision.json"  # measured speed of each precision
VOICES = OUTPUT / ".cache" / "voices"  # computed voices of reference clips
FIELD_TEST = "field-test"  # folder of its report, in the output folder
TINY_VOICE = OUTPUT / ".tiny-voice"  # where the embedded model is built
SAMPLE_SPEECH = ROOT / "utils" / "studio" / "data" / "sample.ogg"  # of the sample project
TINY_MODEL = ROOT / "utils" / "xtts" / "data" / "tiny"  # the embedded model

UPLOADS = OUTPUT / ".uploads"  # files that visitors of the page sent or can download

RECORDINGS = "recordings"  # of a dataset folder
PARTS = ("dataset", "runs", "ready")  # of a project
RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # device names on Windows
MAX_NAME_BYTES = 200  # systems allow 255; temporary names are longer
ALLOWED = re.compile(r"[\w][\w .-]{0,63}")


@dataclass(frozen=True)
class Project:
    """The folder of a project."""

    root: Path

    @property
    def dataset(self) -> Path:
        return self.root / "dataset"

    @property
    def recordings(self) -> Path:  # uploaded and downloaded
        return self.dataset / RECORDINGS

    @property
    def runs(self) -> Path:  # one folder per run
        return self.root / "runs"

    @property
    def ready(self) -> Path:  # the finished model
        return self.root / "ready"

    @property
    def pronunciations(self) -> Path:  # of single words; see utils.xtts.pronunciations
        return self.root / "pronunciations.tsv"

    @property
    def exports(self) -> Path:  # packed models and datasets, which can be created again
        return self.root / "exports"

    @property
    def evaluation(self) -> Path:  # reports
        return self.root / "evaluation"


def project(name: str, output: Path = OUTPUT) -> Project:
    """Return a project in the output folder; it need not exist yet."""
    return Project(resolve_inside(output, validate_name(name)))


def list_projects(output: Path = OUTPUT) -> list[str]:
    if not output.is_dir():
        return []
    folders = [path for path in output.iterdir() if path.is_dir() and is_name(path.name)]
    return sorted(path.name for path in folders if path.name not in PARTS or is_project(path))


def is_project(folder: Path) -> bool:
    """Tell whether a folder holds a dataset, runs or a finished model."""
    return any((folder / name).is_dir() for name in PARTS)


def validate_name(name: object) -> str:
    """Return a name that is safe as a folder on every system."""
    name = name.strip() if isinstance(name, str) else ""  # API clients may send anything
    if not is_name(name):
        raise NameNotAllowedError(name)
    return name


def is_name(name: str) -> bool:
    """Tell whether a name is safe as a folder on every system; folders with other names are no projects."""
    too_long = len(name.encode(errors="replace")) > MAX_NAME_BYTES
    return bool(ALLOWED.fullmatch(name)) and not (RESERVED.fullmatch(name) or name.endswith(".") or too_long)


def resolve_inside(folder: Path, *parts: str | Path) -> Path:
    """Join paths and refuse a result outside the folder, also through '..' or a link."""
    base = folder.resolve()
    path = base.joinpath(*parts).resolve()
    if not path.is_relative_to(base):
        raise OutsideFolderError(path, base)
    return path
