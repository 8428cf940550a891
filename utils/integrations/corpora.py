"""Published corpora and datasets of the Hugging Face hub, read file by file until there are enough hours.

What was downloaded stays in the cache, and a download that was cut off goes on where it stopped.
"""

import contextlib
import fnmatch
import re
import shutil
import tomllib
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from utils.core.addresses import check_public, public_connections_only
from utils.core.errors import AmharicTtsError, DownloadError, first_line
from utils.core.storage import make_folder, write_document
from utils.dataset.clip import Recording, ScanResult
from utils.dataset.errors import FetchError
from utils.dataset.readers.archives import unpack_into
from utils.dataset.readers.folder import ARCHIVES, TABLES
from utils.dataset.readers.registry import read_folder, read_table
from utils.dataset.sources import CORPUS, HUB, USED_CORPORA, used_corpora
from utils.dataset.text_files import LISTS
from utils.media import audio

if TYPE_CHECKING:
    from huggingface_hub import HfApi

    from utils.dataset.facts import Bad

TABLE = Path(__file__).parent / "data" / "corpora.toml"
CONVERTED = "refs/convert/parquet"  # where the hub keeps a copy of a dataset as tables
SPLITS = ("train", "valid", "dev", "test")  # in this order
BLOCK = 1 << 20

OnProgress = Callable[[str, float], None]


class Corpus(NamedTuple):
    """A published corpus."""

    source: str  # hf:owner/name or hf:owner/name:configuration, with * for several; or the address of an archive
    title: str
    size: str
    licence: str
    note: str = ""  # how to get access, or what to know


@cache
def published_corpora() -> dict[str, Corpus]:
    """Return the corpora of ``data/corpora.toml`` by their short names."""
    return {name: Corpus(**row) for name, row in tomllib.loads(TABLE.read_text(encoding="utf-8")).items()}


def find_corpus(name: str) -> Corpus:
    """Return a corpus by its short name, or any dataset of the hub by its own."""
    if name.startswith(HUB):
        return Corpus(name, name.removeprefix(HUB), "", "")
    try:
        return published_corpora()[name.removeprefix(CORPUS)]
    except KeyError:
        known = ", ".join(published_corpora())
        raise FetchError(name.removeprefix(CORPUS), "unknown", known) from None


def read_corpus(
    name: str,
    workspace: Path,
    *,
    speaker: str = "speaker",
    hours: float = 0.0,
    on_progress: OnProgress = lambda _name, _share: None,
) -> ScanResult:
    """Download a corpus until it has this many hours (0: all of it), and return its recordings."""
    corpus = find_corpus(name)
    parts = (
        _read_hub(corpus.source.removeprefix(HUB), workspace, speaker, on_progress)
        if corpus.source.startswith(HUB)
        else [_read_archive(corpus.source, workspace, speaker, on_progress)]
    )
    return _first_hours(parts, hours)


def note_corpus(name: str, dataset: Path) -> Corpus:
    """Remember in the dataset that a corpus is used, so that the model card names it; return it with its licence."""
    corpus = find_corpus(name)
    if not corpus.licence:
        corpus = corpus._replace(licence=_licence(corpus.source))
    make_folder(dataset)
    write_document(dataset / USED_CORPORA, {**used_corpora(dataset), corpus.source: corpus[1:]})
    return corpus


def _first_hours(parts: Iterable[ScanResult], hours: float) -> ScanResult:
    """Join parts until they have enough hours; nothing more is downloaded then."""
    recordings: list[Recording] = []
    problems: list[Bad] = []
    seconds = 0.0
    for part in parts:
        problems += part.problems
        for recording in part.recordings:
            if hours and seconds >= 3600 * hours:
                return ScanResult(tuple(recordings), tuple(problems))
            with contextlib.suppress(AmharicTtsError):  # reported when the audio itself is needed
                seconds += audio.duration(recording.path) if hours else 0.0
            recordings.append(recording)
    return ScanResult(tuple(recordings), tuple(problems))


# --- the hub ---


def _read_hub(name: str, workspace: Path, speaker: str, on_progress: OnProgress) -> Iterator[ScanResult]:
    """Yield the recordings of datasets of the hub: of their tables, or else of their lists and archives."""
    from huggingface_hub import HfApi

    api = HfApi()
    pattern, _, configuration = name.partition(":")
    with _hub_errors(pattern):
        names = _matching(api, pattern) if "*" in pattern else [pattern]
    for repository in names:
        with _hub_errors(repository):
            revision, files = _useful_files(api, repository, configuration)
        if not files:
            raise FetchError(HUB + name, "no_files")
        has_tables = files[0].endswith(tuple(TABLES))
        folder = workspace / re.sub(r"\W+", "-", f"{repository}-{configuration}")
        for file in files:
            on_progress(file, 0.0)
            with _hub_errors(repository):
                path = Path(api.hf_hub_download(repository, file, repo_type="dataset", revision=revision))
            on_progress(file, 1.0)
            if has_tables:
                yield from read_table(path, workspace, speaker)
            else:
                _place(path, folder, file)
        if not has_tables:
            yield read_folder(folder, speaker)


def _matching(api: "HfApi", pattern: str) -> list[str]:
    found = [str(dataset.id) for dataset in api.list_datasets(author=pattern.partition("/")[0])]
    return sorted(name for name in found if fnmatch.fnmatch(name, pattern))


def _useful_files(api: "HfApi", repository: str, configuration: str) -> tuple[str, list[str]]:
    """Return the tables of a dataset, those that the hub made, or its lists and archives; with their revision."""
    from huggingface_hub.errors import RevisionNotFoundError

    patterns = _configured(_card(api, repository), configuration)

    def files_of(revision: str) -> tuple[list[str], list[str]]:
        listed = api.list_repo_files(repository, repo_type="dataset", revision=revision)
        files = [file for file in listed if _belongs(file, configuration, patterns)]
        return files, sorted((file for file in files if file.endswith(tuple(TABLES))), key=_split_order)

    own, tables = files_of("main")
    if tables:
        return "main", tables
    with contextlib.suppress(RevisionNotFoundError):
        tables = files_of(CONVERTED)[1]
        if tables:
            return CONVERTED, tables
    lists = [file for file in own if PurePosixPath(file).suffix.lower() in LISTS]
    archives = [file for file in own if file.endswith((*ARCHIVES, ".wav", ".flac", ".mp3"))]
    return "main", [*lists, *archives] if archives else []


def _belongs(file: str, configuration: str, patterns: Iterable[str]) -> bool:
    """Tell whether a file belongs to a configuration: by a part of its path, or a pattern of the card."""
    path = PurePosixPath(file)
    named = any(part.split("-")[0] == configuration for part in (*path.parts[:-1], path.stem))
    return not configuration or named or any(fnmatch.fnmatch(file, pattern) for pattern in patterns)


def _split_order(file: str) -> tuple[int, str]:
    return next((number for number, split in enumerate(SPLITS) if split in file.lower()), len(SPLITS)), file


@contextlib.contextmanager
def _hub_errors(name: str) -> Iterator[None]:
    import httpx2
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, HFValidationError

    try:
        yield
    except GatedRepoError as error:
        raise FetchError(HUB + name, "gated") from error
    except (OSError, HfHubHTTPError, HFValidationError, httpx2.HTTPError) as error:
        raise FetchError(HUB + name, "failed", first_line(error)) from error


def _licence(source: str) -> str:
    from huggingface_hub import HfApi

    licence = _card(HfApi(), source.removeprefix(HUB).partition(":")[0]).get("license", "unknown")
    return ", ".join(map(str, licence)) if isinstance(licence, list) else str(licence)


def _card(api: "HfApi", repository: str) -> dict[str, Any]:
    """Return what the card of a dataset says at its beginning, in YAML; nothing if it has none."""
    try:
        with _hub_errors(repository):
            text = Path(api.hf_hub_download(repository, "README.md", repo_type="dataset")).read_text(encoding="utf-8")
        _, front, _ = text.split("---\n", 2)
        said = yaml.safe_load(front)
    except (DownloadError, ValueError, yaml.YAMLError):
        return {}
    return said if isinstance(said, dict) else {}


def _configured(card: dict[str, Any], configuration: str) -> list[str]:
    """Return the patterns of the files that belong to a configuration, as its card lists them."""
    configs = [config for config in card.get("configs") or [] if config.get("config_name") == configuration]
    patterns = []
    waiting = [config.get("data_files") for config in configs]
    while waiting:
        item = waiting.pop(0)
        if isinstance(item, str):
            patterns.append(item)
        elif isinstance(item, dict):
            waiting += [item["path"]] if "path" in item else list(item.values())
        elif isinstance(item, list):
            waiting += item
    return patterns


# --- archives ---


def _read_archive(url: str, workspace: Path, speaker: str, on_progress: OnProgress) -> ScanResult:
    name = url.rpartition("/")[2]
    folder = workspace / re.sub(r"\W+", "-", name)
    archive = folder / f".{name}"  # hidden from the readers
    if not archive.is_file():
        make_folder(folder)
        _fetch(url, archive, on_progress)
    _place(archive, folder, name)
    return read_folder(folder, speaker)


def _fetch(url: str, target: Path, on_progress: OnProgress) -> None:
    """Download a file; one that was cut off goes on where it stopped."""
    check_public(url)
    part = target.with_name(f"{target.name}.part")
    have = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310
    try:
        with public_connections_only(), urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            resumed = answer.status == 206  # partial content
            total = int(answer.headers.get("Content-Length", 0)) + (have if resumed else 0)
            with part.open("ab" if resumed else "wb") as file:
                while block := answer.read(BLOCK):
                    file.write(block)
                    on_progress(target.name, min(1.0, file.tell() / total) if total else 0.0)
    except OSError as error:
        if not have or getattr(error, "code", 0) != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise FetchError(url, "failed", str(error)) from error
        total = _whole_size(error)
        if total != have:  # the file there has changed
            part.unlink()
            _fetch(url, target, on_progress)
            return
    if total and part.stat().st_size < total:
        raise FetchError(url, "partial")
    part.replace(target)


def _whole_size(refusal: OSError) -> int:
    """Return the size of a file of which a server refused a part, such as one after its end; 0 if it does not say."""
    size = getattr(refusal, "headers", {}).get("Content-Range", "").removeprefix("bytes */")
    return int(size) if size.isdecimal() else 0


def _place(path: Path, folder: Path, name: str) -> None:
    """Put a list or a recording into a folder, or unpack an archive there, unless that was done."""
    target = folder / name
    make_folder(target.parent)
    if not name.endswith(ARCHIVES):
        if not target.exists():
            shutil.copyfile(path, target)
        return
    done = target.with_name(f".{target.name}.unpacked")
    if not done.is_file():
        unpack_into(path, target.parent)
        done.touch()
