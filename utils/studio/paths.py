"""Where projects, models and settings are on disk; the libraries below know none of these folders."""

import os
import shlex
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from utils.core.errors import NameNotAllowedError, StorageError
from utils.core.paths import HOME_VARIABLE, IS_CHECKOUT, ROOT, expand_home, resolve_inside, validate_name
from utils.studio.facts import ProjectError

if TYPE_CHECKING:
    from utils.config import TrainConfig


def home() -> Path:
    """Return the folder that holds ``output``: what the variable names, the checkout, or the user's data folder."""
    if named := os.environ.get(HOME_VARIABLE):
        return expand_home(named).absolute()
    if IS_CHECKOUT:
        return ROOT
    import platformdirs  # not needed in a checkout

    return platformdirs.user_data_path("amharic-xtts", appauthor=False)


OUTPUT = home() / "output"
CONFIGS = ROOT / "configs" if IS_CHECKOUT else ROOT / "utils" / "configs"  # a wheel holds nothing outside the package
MODELS = OUTPUT / ".models"  # one folder per published version
SETTINGS = OUTPUT / ".settings"  # user choices and measurements of this machine
LICENCE_CONSENT = SETTINGS / "licence-consent.json"
GPU_CERTIFICATE = SETTINGS / "gpu-certificate.json"  # what was tested on the GPU; beside it as .md
PRECISIONS = SETTINGS / "precision.json"  # measured speed of each precision
VOICES = OUTPUT / ".cache" / "voices"  # computed voices of reference clips
FIELD_TEST = "field-test"  # folder of its report, in the output folder
TINY_VOICE = OUTPUT / ".tiny-voice"  # where the embedded model is built
UPLOADS = OUTPUT / ".uploads"  # files that visitors of the page sent or can download

RECORDINGS = "recordings"  # of a dataset folder
PARTS = ("dataset", "runs", "ready")  # of a project


@dataclass(frozen=True)
class Project:
    """The folder of a project."""

    root: Path

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def argument(self) -> str:
        """What a command needs after ``--project``: the name, and ``--output`` if the project is elsewhere."""
        parent = self.root.parent
        return shlex.join([self.name] if parent == OUTPUT else [self.name, "--output", str(parent)])

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
    root = resolve_inside(output, validate_name(name))
    if not root.exists() and (other := same_folder(root.name, output)):
        raise ProjectError("other_case", root.name, other)
    return Project(root)


def project_of(config: "TrainConfig") -> Project:
    """Return the project of a run: its output path, or "default" in it if it is the folder with all projects."""
    is_default = config.output_path == type(config).model_fields["output_path"].default
    root = OUTPUT if is_default else Path(config.output_path).resolve()
    return project("default", root) if root == OUTPUT and not is_project(root) else Project(root)


def same_folder(name: str, output: Path) -> str:
    """Return the name of the folder that has this name on Windows and macOS; empty if it is free."""

    def compared(name: str) -> str:
        return unicodedata.normalize("NFC", name).casefold()

    names = sorted(path.name for path in output.glob("*"))
    return name if name in names else next((other for other in names if compared(other) == compared(name)), "")


def list_projects(output: Path) -> list[str]:
    return [path.name for path in _folders(output) if not _problem(path)]


def list_others(output: Path) -> list[StorageError]:
    """Return why the other folders among the projects are none: an odd name, or a link that leads elsewhere."""
    return [error for path in _folders(output) if (error := _problem(path))]


def folders_with(parent: Path, file: str) -> list[str]:
    """List the folders that contain a file, newest first; their names begin with the time."""
    return sorted((path.parent.name for path in parent.glob(f"[!.]*/{file}")), reverse=True)


def _folders(output: Path) -> list[Path]:
    folders = sorted(path for path in output.glob("[!.]*") if path.is_dir())
    return [path for path in folders if path.name not in PARTS or is_project(path)]


def _problem(folder: Path) -> StorageError | None:
    try:
        if validate_name(folder.name) != folder.name:  # a space at an end
            raise NameNotAllowedError(folder.name)
        resolve_inside(folder.parent, folder.name)
    except StorageError as error:
        return error
    return None


def is_project(folder: Path) -> bool:
    """Tell whether a folder holds a dataset, runs or a finished model."""
    return any((folder / name).is_dir() for name in PARTS)
