"""Check, count, edit, filter, merge and export a dataset. Every edit can be undone."""

import argparse
import dataclasses
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from utils.cli.check_text import add_vocabulary, open_tokenizer
from utils.cli.runs import add_project, chosen_project
from utils.config import AUTO_SECONDS, MODEL_SECONDS, DatasetConfig
from utils.config.flags import add_flags, read_flags
from utils.core import wording
from utils.core.storage import write_atomically
from utils.dataset import bulk_edits, editor, length_mix, metadata, statistics
from utils.dataset.clip import Clip
from utils.dataset.errors import EditError
from utils.dataset.export import export as export_dataset
from utils.dataset.store import load_dataset, open_store
from utils.studio.facts import UsageError

SHOWN = 200  # problems and clips printed; the rest is only counted
FILE_NAMES = "Audio files keep their names."
UNDO = "To undo: dataset undo."


# Long because it is a list: each action with its options.
def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, act: Callable[[Path, argparse.Namespace], int | None]) -> argparse.ArgumentParser:
        summary = (act.__doc__ or "").partition("\n")[0]
        action = actions.add_parser(name, help=summary, description=summary)
        action.set_defaults(act=act)
        add_project(action)
        return action

    action = add("validate", validate)
    action.epilog = "Add --vocab or --model to check tokens too."
    action.add_argument("path", type=Path, nargs="?", help="list or dataset folder (default: the project's dataset)")
    action.add_argument(
        "--max-seconds", type=float, default=MODEL_SECONDS, help="maximum clip length (default: what the model holds)"
    )
    add_vocabulary(action)

    add("stats", stats)

    action = add("report", report)
    action.add_argument("page", type=Path, nargs="?", help="new HTML file (default: report.html in the dataset)")
    action.add_argument("--language", choices=("en", "am"), default="en", help="language of the page (default: en)")

    action = add("merge", merge)
    action.add_argument("other", type=Path, help="folder of the other dataset, which is only read")
    action.add_argument("--dry-run", action="store_true", help="show what would happen")

    action = add("lengths", lengths)
    action.epilog = "Add --vocab or --model to count tokens too. Exit code 1: a file cannot be read."
    action.add_argument("path", type=Path, nargs="?", help="list or dataset folder (default: the project's dataset)")
    action.add_argument("--add", action="store_true", help="add joined and short clips made from neighbouring clips")
    action.add_argument(
        "--share",
        type=float,
        default=0.2,
        help="clips of each kind to add, as a share of the training clips (default: 0.2)",
    )
    action.add_argument(
        "--max-seconds", type=float, default=AUTO_SECONDS, help="maximum length of a joined clip (default: 15)"
    )
    add_vocabulary(action)

    action = add("resplit", resplit)
    action.add_argument("--eval-share", type=_share, default=0.05, help="share held out (default: 0.05)")
    action.add_argument(
        "--by", choices=("recording", "speaker", "time"), default="recording", help="unit that is held out as a whole"
    )

    action = add("export", export)
    action.add_argument(
        "shape", choices=("zip", "ljspeech", "parquet"), help="format; parquet is for Hugging Face datasets"
    )
    action.add_argument("target", type=Path, help="new file (zip) or folder")

    action = add("exclude", exclude)
    action.add_argument("clips", nargs="*", metavar="CLIP", help="id of a clip")
    action.add_argument("--speaker", help="exclude all clips of this speaker")
    action.add_argument("--reason", default="reviewed", help="why, in any words (default: reviewed)")

    action = add("restore", restore)
    action.add_argument("clips", nargs="*", metavar="CLIP", help="id of a clip")
    action.add_argument("--reason", help="restore all clips that were excluded for this reason")

    _add_filter_arguments(add("filter", filter_again))

    action = add("rename", rename)
    action.epilog = f"{FILE_NAMES} The split is unchanged. {UNDO}"
    action.add_argument(
        "--speaker",
        type=_names,
        action="append",
        metavar="OLD=NEW",
        help="can be repeated; all are renamed at once, so a=b with b=a swaps two",
    )

    action = add("edit", edit)
    action.add_argument("clip", help="id of the clip, as listed by restore and on the page")
    change = action.add_mutually_exclusive_group(required=True)
    change.add_argument("--text", help="the correct transcript")
    change.add_argument("--exclude", "--aside", metavar="REASON", help="exclude the clip, for this reason")
    change.add_argument("--undo", action="store_true", help="undo the last change of this clip, or redo it")

    add("undo", undo)
    add("redo", redo)


def _add_filter_arguments(action: argparse.ArgumentParser) -> None:
    action.description = (
        f"{action.description} Clips outside the limits are excluded; clips that a filter had excluded and that are"
        " now within the limits are restored. Clips excluded by hand, and duplicates, stay excluded."
    )
    action.epilog = (
        "Limits that you leave out have their defaults, even if the dataset was prepared with others; to reuse the"
        " limits of a run, pass its config.yaml with --config. Clips restored by hand are filtered like all others."
        " To undo: dataset undo, or dataset edit --undo for a single clip."
    )
    action.add_argument("--apply", action="store_true", help="apply the changes")
    add_flags(action, DatasetConfig, bulk_edits.LIMITS)


def _share(written: str) -> float:
    value = float(written)
    if not 0 < value <= 0.5:
        raise argparse.ArgumentTypeError("must be above 0 and at most 0.5")
    return value


def _names(written: str) -> tuple[str, str]:
    old, sign, new = written.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError("must be OLD=NEW")
    return old, new.strip()


def run(arguments: argparse.Namespace) -> int:
    folder = chosen_project(arguments).dataset
    code = arguments.act(folder, arguments)
    metadata.write_lists(folder)
    return code or 0


def validate(folder: Path, arguments: argparse.Namespace) -> int:
    """Print every problem with its file and line; exit code 1 if there is one."""
    path = arguments.path or folder
    language = arguments.language
    tokenizer = None
    if arguments.vocab or arguments.model:
        rows = [row for file in metadata.list_files(path) for row in metadata.read_list(file)]
        tokenizer = open_tokenizer(arguments, (row.text for row in rows))
    elif path.is_dir():
        language = metadata.read_language(path)
    problems = list(metadata.check(path, arguments.max_seconds, language, tokenizer))
    for problem in problems[:SHOWN]:
        print(wording.describe(problem))
    print(f"{len(problems)} problems" + (f", the first {SHOWN} are shown" if len(problems) > SHOWN else "") + ".")
    return int(bool(problems))


def stats(folder: Path, _arguments: argparse.Namespace) -> None:
    """Show hours, speakers, lengths, speech rate, noise, phonemes, and audio usage."""
    store = open_store(folder)
    print(statistics.report(statistics.count(store, metadata.read_language(folder))))
    account = statistics.account(store.read())
    print(*map(wording.describe, (account.total, *account.failed)), sep="\n")


def report(folder: Path, arguments: argparse.Namespace) -> None:
    """Write one HTML page: facts, losses, phonemes, texts to check with players, and what to do next."""
    from utils.dataset.report import describe_dataset  # imports scipy
    from utils.ui.dataset_report import page

    path = arguments.page or folder / "report.html"
    write_atomically(path, page(describe_dataset(folder), folder, folder.parent.name, arguments.language))
    print(f"Open this in a browser: {path}")


def merge(folder: Path, arguments: argparse.Namespace) -> None:
    """Add the clips and the split of another dataset; existing clips are unchanged."""
    print(bulk_edits.merge(folder, arguments.other, dry_run=arguments.dry_run).total)


def resplit(folder: Path, arguments: argparse.Namespace) -> None:
    """Choose new evaluation clips; do not do this between two runs that train the same model."""
    note = editor.resplit(folder, arguments.eval_share, arguments.by)
    facts = [statistics.split_totals(load_dataset(folder).kept), *([note] if note else [])]
    print(*map(wording.describe, facts))


def lengths(folder: Path, arguments: argparse.Namespace) -> int:
    """Show the lengths of the clips, gaps, and a max_audio_length; with --add, fill the gaps from neighbours."""
    if arguments.add:
        made = length_mix.add_lengths(folder, share=arguments.share, max_seconds=arguments.max_seconds).clips
        short = sum(clip.span.seconds < length_mix.SHORT for clip in made)
        print(f"Added {len(made) - short} joined and {short} short clips. To undo this: dataset undo.")
    rows, measured = statistics.measure_lengths(arguments.path or folder)
    if arguments.vocab or arguments.model:
        tokenizer = open_tokenizer(arguments, (row.text for row in rows))
        counts = tuple(len(tokenizer.tokenize(row.text, arguments.language).ids) for row in rows)
        measured = dataclasses.replace(measured, tokens=counts)
    print(measured.render())
    return int(bool(measured.unreadable))


def export(folder: Path, arguments: argparse.Namespace) -> None:
    """Write the dataset in a format for other programs."""
    print(f"Written: {export_dataset(folder, arguments.target, arguments.shape)}")


def exclude(folder: Path, arguments: argparse.Namespace) -> None:
    """Exclude clips, by their ids or all of a speaker."""
    names = list[str](arguments.clips)
    if arguments.speaker is not None:
        kept = load_dataset(folder).kept
        of_speaker = [clip.id for clip in kept if clip.speaker == arguments.speaker]
        if not of_speaker:
            raise EditError("no_speaker", wording.join_list(sorted({clip.speaker for clip in kept})))
        names += of_speaker
    if not names:
        raise EditError("nothing_chosen")
    change = editor.exclude(folder, names, arguments.reason)
    print(f"Excluded {len(change.clips)} clips.")


def restore(folder: Path, arguments: argparse.Namespace) -> None:
    """Restore excluded clips; without ids, list them."""
    excluded = load_dataset(folder).excluded
    chosen = [clip.id for clip in excluded if arguments.reason in {clip.reason, clip.note}] if arguments.reason else []
    if names := [*arguments.clips, *chosen]:
        print(f"Restored {len(editor.restore(folder, names).clips)} clips.")
        return
    for clip in excluded[:SHOWN]:
        print(f"{clip.id}  {clip.span.start:9.2f}-{clip.span.end:.2f} s  {why(clip)}: {clip.text[:60]}")
    print(f"{len(excluded)} clips are excluded.")


def filter_again(folder: Path, arguments: argparse.Namespace) -> None:
    """Re-run the quality filters with other limits; only shows the changes without --apply."""
    print(bulk_edits.refilter(folder, read_flags(arguments, DatasetConfig), apply=arguments.apply))
    print("Changes applied." if arguments.apply else "Nothing was changed. Add --apply to apply the changes.")


def why(clip: Clip) -> str:
    return clip.note if clip.reason == "other" else clip.reason or ""


def rename(folder: Path, arguments: argparse.Namespace) -> None:
    """Rename or merge speakers; without names, list them."""
    if not arguments.speaker:
        clips = load_dataset(folder).clips.values()
        for speaker, count in Counter(clip.speaker for clip in clips).most_common():
            print(f"{speaker}  {count} clips")
        print(FILE_NAMES)
        return
    names = dict(arguments.speaker)
    if len(names) < len(arguments.speaker):
        raise UsageError("renamed_twice")
    for old, count in editor.rename_speakers(folder, names).items():
        print(f"{old} renamed to {names[old]}: {count} clips.")


def edit(folder: Path, arguments: argparse.Namespace) -> None:
    """Correct the text of a clip, exclude it, or undo its last change."""
    if arguments.text is not None:
        change = editor.set_text(folder, arguments.clip, arguments.text)
    elif arguments.exclude is not None:
        change = editor.exclude(folder, [arguments.clip], arguments.exclude)
    else:
        change = editor.revert(folder, arguments.clip)
    (clip,) = change.clips
    print(f"{clip.id}  {clip.status}{f' ({why(clip)})' if clip.reason else ''}: {clip.text}")


def undo(folder: Path, _arguments: argparse.Namespace) -> None:
    """Undo the last edit, made here or on the page."""
    change = editor.undo(folder)
    print(f"Undone: {change.name}, {len(change.clips)} clips.")


def redo(folder: Path, _arguments: argparse.Namespace) -> None:
    """Make the edit again that was undone last."""
    change = editor.redo(folder)
    print(f"Redone: {change.name}, {len(change.clips)} clips.")
