"""The metadata lists of a dataset, in the format of coqui-tts: ``metadata_train.csv`` and ``metadata_eval.csv``.

They are an export of the store. An edit writes them a moment later, so that editing one of 50,000 clips does not wait
for 50,000 lines; whoever reads them calls ``write_lists`` first, which does nothing while they are up to date.
"""

import hashlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from utils.config import MODEL_TOKENS, TrainConfig
from utils.core import languages
from utils.core.errors import AmharicTtsError, as_typed
from utils.core.facts import Fact, NotStored, from_json, log_fact, to_json
from utils.core.paths import resolve_inside
from utils.core.storage import file_lock, hash_text, read_document, read_text, write_atomically, write_document
from utils.dataset.clip import COLUMNS, Clip, Split, clip_of_row, columns_of
from utils.dataset.errors import DatasetError
from utils.dataset.facts import LineIssue, LineProblem
from utils.dataset.store import Store
from utils.dataset.text_files import MetadataRow, read_listing
from utils.recognition.spans import Span

if TYPE_CHECKING:
    from utils.xtts.tokenizer import Tokenizer

HEADER = "audio_file|text|speaker_name"
LANGUAGE_FILE = "lang.txt"
WAVS = "wavs"
FILES: dict[Split, str] = {"train": "metadata_train.csv", "eval": "metadata_eval.csv"}
RUN_CLIPS, OTHER_CLIPS = "clips.json", "clips-{number}.json"  # in the folder of a training
ROUNDING = 0.02  # seconds by which a header may differ from the store
DELAY = 1.0  # seconds after the last edit
_timers: dict[Path, threading.Timer] = {}
_timers_lock = threading.Lock()


def write_lists(folder: Path, language: str | None = None) -> None:
    """Write the lists of the kept clips if they are out of date, and a language beside them if one is given."""
    if language is not None:
        _replace(folder / LANGUAGE_FILE, f"{language}\n")
    store = Store(folder)
    exist = all((folder / name).is_file() for name in FILES.values())
    if not store.exists or (exist and store.meta("lists_revision") == store.meta("revision")):
        return
    with file_lock(folder / ".lists.lock"):
        with store.reading():
            revision = store.meta("revision")
            sides = {name: store.clips(status="kept", split=split) for split, name in FILES.items()}
        for name, clips in sides.items():
            rows = (format_row(clip.audio, clip.text, clip.speaker) for clip in clips)
            _replace(folder / name, "\n".join([HEADER, *rows, ""]))
    store.set_meta("lists_revision", revision)
    store.seal()


def write_lists_later(folder: Path) -> None:
    """Write the lists in the background, a moment after the last edit; a program that ends waits for it."""

    def write() -> None:
        with _timers_lock:
            _timers.pop(folder, None)
        try:
            write_lists(folder)
        except (AmharicTtsError, OSError) as error:  # the next reader tries again and reports it
            log_fact(NotStored(as_typed(error)))

    with _timers_lock:
        if folder in _timers:
            _timers[folder].cancel()
        _timers[folder] = threading.Timer(DELAY, write)
        _timers[folder].start()


def _replace(path: Path, text: str) -> None:
    if not path.is_file() or path.read_bytes() != text.encode():
        write_atomically(path, text)


def format_row(audio: str, text: str, speaker: str) -> str:
    """Write one line that every reader of such lists splits in the same way."""
    return "|".join(map(plain, (audio, text, speaker)))


def plain(text: str) -> str:
    """Leave out what would break the line.

    Plain coqui-tts reads the lists with quoting on, and removes straight quotes from the text later anyway.
    """
    return " ".join(text.replace("|", " ").replace('"', "").split())


def read_language(folder: Path) -> str:
    """Return the language of a dataset; Amharic if it does not say."""
    path = folder / LANGUAGE_FILE
    return read_text(path).strip() if path.is_file() else "am"


def list_files(path: Path) -> list[Path]:
    """Return the lists of a dataset folder, or the list itself."""
    if path.is_file():
        return [path]
    write_lists(path)
    lists = [path / name for name in FILES.values() if (path / name).is_file()]
    if not lists:
        raise DatasetError(path, "no_list")
    return lists


def read_list(path: Path) -> list[MetadataRow]:
    """Return the usable rows of a list."""
    return read_listing(path).clips


def header_seconds(path: Path) -> float | None:
    """Return the length that a file's header states, or None if it cannot be read."""
    import soundfile

    try:
        return float(soundfile.info(path).duration)
    except (soundfile.LibsndfileError, OSError):
        return None


@dataclass(frozen=True)
class ClipLists:
    """The clips of a run, each with a hash of its content."""

    folder: Path  # the dataset folder: audio paths start here
    train: tuple[Clip, ...]
    eval: tuple[Clip, ...]
    problems: tuple[Fact, ...]  # why other lines of the lists are left out

    @property
    def clips(self) -> list[Clip]:
        return [*self.train, *self.eval]

    @property
    def voice(self) -> Path:
        """The clip that represents the voice: the longest that is not trained on."""
        return resolve_inside(self.folder, max(self.eval, key=lambda clip: clip.span.seconds).audio)


class OtherClips(NamedTuple):
    """The clips of another language that are mixed into a run, and how many of them compared with other datasets."""

    lists: ClipLists
    language: str
    weight: float


def fingerprint(clips: list[Clip]) -> str:
    """Hash the audio, texts and sides of clips in their order: the course of a run depends on them."""
    return hash_text("".join(f"{clip.content}\x1f{clip.text}\x1f{clip.split}\n" for clip in clips), 8)


def read_clips(config: TrainConfig, dataset: Path) -> ClipLists:
    """Return the clips of a dataset, or of the lists that the settings name."""
    if not (config.train_csv or config.eval_csv) and Store(dataset).exists:
        # the store is the truth; the lists of a dataset are for other programs
        return _checked(_by_side(dataset.resolve(), Store(dataset).clips(status="kept")), dataset)
    write_lists(dataset)
    paths = _list_paths(config, dataset)
    folder = paths["train"].resolve().parent
    if paths["eval"].resolve().parent != folder:
        raise DatasetError(paths["eval"], "apart", str(paths["train"]))
    problems: list[Fact] = []
    clips = [clip for side, path in paths.items() for clip in _listed_clips(path, side, problems)]
    return _checked(_by_side(folder, clips, problems), paths["eval"])


def _list_paths(config: TrainConfig, dataset: Path) -> dict[Split, Path]:
    names: dict[Split, str] = {"train": config.train_csv, "eval": config.eval_csv}
    paths = {side: Path(name) if name else dataset / FILES[side] for side, name in names.items()}
    for path in paths.values():
        if not path.is_file():
            raise DatasetError(path, "no_list")
    return paths


def _by_side(folder: Path, clips: Sequence[Clip], problems: Iterable[Fact] = ()) -> ClipLists:
    train, evaluation = (tuple(clip for clip in clips if clip.split == side) for side in FILES)
    return ClipLists(folder, train, evaluation, tuple(problems))


def _checked(clips: ClipLists, source: Path) -> ClipLists:
    """Refuse clips that cannot be trained on: none on one side, or the same ones on both."""
    if not clips.train or not clips.eval:
        raise DatasetError(source, "no_rows", " ".join(map(str, clips.problems[:3])))
    both = {clip.content for clip in clips.train} & {clip.content for clip in clips.eval}
    if both:  # the evaluation would reward what was memorised
        name = next(clip.audio for clip in clips.eval if clip.content in both)
        raise DatasetError(source, "overlap", name)
    return clips


def clips_of_run(run: Path, config: TrainConfig, dataset: Path) -> ClipLists:
    """Return the clips that a run started with; those of the dataset when it has not started yet."""
    path = run / RUN_CLIPS
    return _stored_clips(path, dataset) if path.is_file() else read_clips(config, dataset)


def other_clips_of_run(run: Path, config: TrainConfig) -> list[OtherClips]:
    """Return the clips of other languages that a run started with; they are stored with it when it first starts."""
    others = []
    for number, (name, weight) in enumerate(config.replay_weights.items(), 1):
        folder = project_dataset(name)
        path = run / OTHER_CLIPS.format(number=number)
        if path.is_file():
            clips = _stored_clips(path, folder)
        else:
            clips = read_clips(config.model_copy(update={"train_csv": "", "eval_csv": ""}), folder)
            # two datasets may give the same name to different people
            named = [replace(clip, speaker=f"{number}/{clip.speaker}") for clip in clips.clips]
            clips = _by_side(clips.folder, named, clips.problems)
            _store_clips(path, clips)
        others.append(OtherClips(clips, languages.canonical(read_language(folder)), weight))
    return others


def project_dataset(folder: Path) -> Path:
    """Return the dataset of a project, or the folder itself if it is one."""
    return folder / "dataset" if (folder / "dataset").is_dir() else folder


def _stored_clips(path: Path, folder: Path) -> ClipLists:
    try:
        stored = read_document(path)
        return _by_side(folder, list(map(clip_of_row, stored["clips"])), map(from_json, stored["problems"]))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise DatasetError(path, "run_clips") from error


def store_clips_of_run(run: Path, config: TrainConfig, clips: ClipLists) -> None:
    """Save the clips with a run when it first starts, so that the dataset can be edited meanwhile.

    Lists that the settings name belong to other programs; they are read again.
    """
    path = run / RUN_CLIPS
    if not (config.train_csv or config.eval_csv or path.exists()):
        _store_clips(path, clips)


def _store_clips(path: Path, clips: ClipLists) -> None:
    rows = [[columns[name] for name in COLUMNS] for columns in map(columns_of, clips.clips)]
    write_document(path, {"problems": [to_json(problem) for problem in clips.problems], "clips": rows})


def _listed_clips(path: Path, split: Split, problems: list[Fact]) -> Iterator[Clip]:
    listing = read_listing(path)
    problems += [LineProblem(path, 0, "unreadable_list", str(problem)) for problem in listing.problems]
    for row in listing.clips:
        name = row.audio.replace("\\", "/")
        sound = path.parent / name
        seconds = header_seconds(sound)
        if seconds is None or not row.text:
            problems.append(LineProblem(path, row.line, "unreadable" if seconds is None else "no_text", name))
            continue
        with sound.open("rb") as file:
            content = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        whole = Span(0.0, seconds)
        yield Clip(content, content, name, whole, row.speaker or "speaker", row.text, name, content, split=split)


Finding = tuple[LineIssue, str, str]  # the issue, what it is about, and the limit or the other place


def check(path: Path, max_seconds: float, language: str, tokenizer: "Tokenizer | None" = None) -> Iterator[LineProblem]:
    """Yield every problem of a dataset folder or of one list; only a tokenizer finds those of tokens."""
    contents = Store(path if path.is_dir() else path.parent).read()
    seconds = {clip.audio: clip.span.seconds for clip in contents.kept}
    files: dict[str, MetadataRow] = {}
    texts: dict[tuple[str, str], MetadataRow] = {}
    for file in list_files(path):
        listing = read_listing(file)
        yield from (LineProblem(file, 0, "unreadable_list", str(problem)) for problem in listing.problems)
        if not listing.clips:
            yield LineProblem(file, 1, "empty_list")
        for row in listing.clips:
            findings = [
                *_line_problems(row, files, texts),
                *_audio_problems(row, max_seconds, seconds.get(row.audio)),
                *(_token_problems(row, tokenizer, language) if tokenizer else ()),
            ]
            yield from (LineProblem(file, row.line, *finding) for finding in findings)


def _line_problems(
    row: MetadataRow, files: dict[str, MetadataRow], texts: dict[tuple[str, str], MetadataRow]
) -> Iterator[Finding]:
    """Find repeated lines, and texts of a speaker in both lists, which make the evaluation unfair."""
    if not row.text:
        yield "no_text", row.audio, ""
    first = files.setdefault(row.audio, row)
    if first is not row:
        yield "repeated_file", row.audio, f"{first.list.name}:{first.line}"
    same = texts.setdefault((row.speaker, row.text), row)
    if same.list != row.list and row.text and first is row:
        yield "repeated_text", row.audio, f"{same.list.name}:{same.line}"


def _audio_problems(row: MetadataRow, max_seconds: float, expected: float | None) -> Iterator[Finding]:
    folder = row.list.parent.resolve()
    if not row.audio or not row.path.is_file():
        yield "no_file", row.audio or "–", ""
        return
    if not row.path.resolve().is_relative_to(folder):
        yield "outside", row.audio, str(folder)
    seconds = header_seconds(row.path)
    if not seconds:
        yield "unreadable", row.audio, ""
    elif seconds > max_seconds + ROUNDING:
        yield "too_long", f"{row.audio} ({seconds:.2f} s)", f"{max_seconds:g} s"
    elif expected is not None and abs(seconds - expected) > ROUNDING:
        yield "changed", f"{row.audio} ({seconds:.2f} s)", f"{expected:.2f} s"


def _token_problems(row: MetadataRow, tokenizer: "Tokenizer", language: str) -> Iterator[Finding]:
    reading = tokenizer.tokenize(row.text, language)
    if reading.unknown:
        yield "no_symbol", " ".join(reading.unknown), ""
    if len(reading.ids) > MODEL_TOKENS:
        yield "many_tokens", str(len(reading.ids)), str(MODEL_TOKENS)
