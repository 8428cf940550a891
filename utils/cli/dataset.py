"""Check, count, edit, filter, merge and export a dataset. Every edit can be undone."""

import argparse
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from utils.cli.check_text import add_vocabulary, open_tokenizer
from utils.cli.runs import add_project
from utils.config import DatasetConfig
from utils.config.flags import add_flags, read_flags
from utils.core.errors import ConfigError
from utils.core.paths import project

SHOWN = 200  # problems and clips printed; the rest is only counted
FILE_NAMES = "Audio files keep their names."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions; each has its own help."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, (act, describe) in ACTIONS.items():
        summary = (act.__doc__ or "").partition("\n")[0]
        action = actions.add_parser(name, help=summary, description=summary)
        add_project(action)
        describe(action)


def run(arguments: argparse.Namespace) -> int:
    """Run one action on the dataset of a project."""
    from utils.dataset.metadata import write_lists

    act, _ = ACTIONS[arguments.action]
    folder = project(arguments.project, arguments.output).dataset
    code = act(folder, arguments)
    write_lists(folder)
    return code


def validate(folder: Path, arguments: argparse.Namespace) -> int:
    """Print every problem with its file and line; exit code 1 if there is one."""
    from utils.dataset.metadata import list_files, read_language, read_list
    from utils.dataset.validate import check

    place = arguments.place or folder
    language = arguments.language
    tokenizer = None
    if arguments.vocab or arguments.model:
        rows = [row for path in list_files(place) for row in read_list(path)]
        tokenizer = open_tokenizer(arguments, (row.text for row in rows))
    elif place.is_dir():
        language = read_language(place)
    faults = list(check(place, arguments.max_seconds, language, tokenizer))
    for fault in faults[:SHOWN]:
        print(fault)
    print(f"{len(faults)} problems" + (f", the first {SHOWN} are shown" if len(faults) > SHOWN else "") + ".")
    return int(bool(faults))


def _describe_validate(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Add --vocab or --model to check tokens too."
    parser.add_argument("place", type=Path, nargs="?", help="list or dataset folder (default: the project's dataset)")
    parser.add_argument("--max-seconds", type=float, default=11.6, help="maximum clip length (default: 11.6)")
    add_vocabulary(parser)


def stats(folder: Path, arguments: argparse.Namespace) -> int:
    """Show hours, speakers, lengths, speech rate, noise, phonemes, and audio usage."""
    from utils.dataset import statistics
    from utils.dataset.metadata import read_language
    from utils.dataset.store import open_store

    store = open_store(folder)
    counts = statistics.count(store, read_language(folder))
    print(statistics.report(counts))
    print(statistics.account(store.read()).render())
    if message := store.meta("migration"):
        print(message)
    if arguments.plot:
        statistics.draw(counts, arguments.plot)
        print(f"Plots written to {arguments.plot}.")
    return 0


def _describe_stats(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="write plots too")


def merge(folder: Path, arguments: argparse.Namespace) -> int:
    """Add the clips and the split of another dataset; existing clips are unchanged."""
    from utils.dataset.merge import merge as join

    print(join(folder, arguments.other, dry_run=arguments.dry_run))
    return 0


def _describe_merge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("other", type=Path, help="folder of the other dataset, which is only read")
    parser.add_argument("--dry-run", action="store_true", help="show what would happen")


def resplit(folder: Path, arguments: argparse.Namespace) -> int:
    """Choose new evaluation clips; do not do this between two runs that train the same model."""
    from utils.dataset.editor import resplit as split_anew
    from utils.dataset.statistics import split_counts
    from utils.dataset.store import open_store

    note = split_anew(folder, arguments.eval_share, arguments.by)
    print(" ".join(f"{name} {value}" for name, value in split_counts(open_store(folder)).items()), note)
    return 0


def _describe_resplit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--eval-share", type=_share, default=0.05, help="share held out (default: 0.05)")
    parser.add_argument(
        "--by", choices=("recording", "speaker", "time"), default="recording", help="what is held out as a whole"
    )


def export(folder: Path, arguments: argparse.Namespace) -> int:
    """Write the dataset in a format for other programs."""
    from utils.dataset.export import export as write

    print(f"Written: {write(folder, arguments.target, arguments.shape)}")
    return 0


def _describe_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "shape", choices=("zip", "ljspeech", "parquet"), help="format; parquet is for Hugging Face datasets"
    )
    parser.add_argument("target", type=Path, help="new file (zip) or folder")


def restore(folder: Path, arguments: argparse.Namespace) -> int:
    """Restore excluded clips; without ids, list them."""
    from utils.dataset import editor
    from utils.dataset.store import load_dataset

    excluded = load_dataset(folder).excluded
    chosen = [clip.id for clip in excluded if clip.reason == arguments.reason] if arguments.reason else []
    if names := [*arguments.clips, *chosen]:
        print(f"Restored {len(editor.restore(folder, names).clips)} clips.")
        return 0
    for clip in excluded[:SHOWN]:
        print(f"{clip.id}  {clip.span.start:9.2f}-{clip.span.end:.2f} s  {clip.reason}: {clip.text[:60]}")
    print(f"{len(excluded)} clips are excluded.")
    return 0


def _describe_restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("clips", nargs="*", metavar="CLIP", help="id of a clip")
    parser.add_argument("--reason", help="restore all clips that were excluded for this reason")


def filter_again(folder: Path, arguments: argparse.Namespace) -> int:
    """Re-run the quality filters with other limits; only shows the changes without --apply."""
    from utils.dataset.filtering import refilter

    print(refilter(folder, read_flags(arguments, DatasetConfig), apply=arguments.apply))
    print("Changes applied." if arguments.apply else "Nothing was changed. Add --apply to apply the changes.")
    return 0


def _describe_filter(parser: argparse.ArgumentParser) -> None:
    from utils.dataset.filtering import LIMITS

    parser.description = (
        f"{parser.description} Clips outside the limits are excluded; clips that a filter had excluded and that are"
        " now within the limits are restored. Clips excluded by hand, and duplicates, stay excluded."
    )
    parser.epilog = (
        "Limits that are not given have their default, even if the dataset was prepared with others; use --config"
        " with the config.yaml of that run to reuse its limits. Clips restored by hand are filtered like all others."
        " To undo, filter again with the earlier limits, or use dataset edit --undo for a single clip."
    )
    parser.add_argument("--apply", action="store_true", help="apply the changes")
    add_flags(parser, DatasetConfig, LIMITS)


def rename(folder: Path, arguments: argparse.Namespace) -> int:
    """Rename or merge speakers; without names, list them."""
    from utils.dataset.editor import rename_speakers
    from utils.dataset.store import load_dataset

    if not arguments.speaker:
        clips = load_dataset(folder).clips.values()
        for speaker, count in Counter(clip.speaker for clip in clips).most_common():
            print(f"{speaker}  {count} clips")
        print(FILE_NAMES)
        return 0
    names = dict(arguments.speaker)
    if len(names) < len(arguments.speaker):
        raise ConfigError("A speaker is renamed twice.", hint="Give each old name once.")
    for old, count in rename_speakers(folder, names).items():
        print(f"{old} renamed to {names[old]}: {count} clips.")
    return 0


def _describe_rename(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"{FILE_NAMES} The split is unchanged. To undo, rename again, or use edit --undo for a single clip."
    parser.add_argument(
        "--speaker",
        type=_names,
        action="append",
        metavar="OLD=NEW",
        help="can be repeated; all are renamed at once, so a=b with b=a swaps two",
    )


def edit(folder: Path, arguments: argparse.Namespace) -> int:
    """Correct the text of a clip, exclude it, or undo its last change."""
    from utils.dataset import editor

    if arguments.text is not None:
        edit = editor.set_text(folder, arguments.clip, arguments.text)
    elif arguments.exclude is not None:
        edit = editor.exclude(folder, [arguments.clip], arguments.exclude)
    else:
        edit = editor.revert(folder, arguments.clip)
    (clip,) = edit.clips
    print(f"{clip.id}  {clip.status}{f' ({clip.reason})' if clip.reason else ''}: {clip.text}")
    return 0


def _describe_edit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("clip", help="id of the clip, as listed by restore and on the page")
    change = parser.add_mutually_exclusive_group(required=True)
    change.add_argument("--text", help="the correct transcript")
    change.add_argument("--exclude", "--aside", metavar="REASON", help="leave the clip out, for a reason of your own")
    change.add_argument("--undo", action="store_true", help="undo the last change of this clip; again: redo it")


def undo(folder: Path, arguments: argparse.Namespace) -> int:  # noqa: ARG001  # the signature of an action
    """Undo the last edit, made here or on the page."""
    from utils.dataset import editor

    edit = editor.undo(folder)
    print(f"Undone: {edit.name}, {len(edit.clips)} clips.")
    return 0


def redo(folder: Path, arguments: argparse.Namespace) -> int:  # noqa: ARG001  # the signature of an action
    """Make the edit again that was undone last."""
    from utils.dataset import editor

    edit = editor.redo(folder)
    print(f"Redone: {edit.name}, {len(edit.clips)} clips.")
    return 0


def _describe_step(parser: argparse.ArgumentParser) -> None:
    """Take no arguments of its own."""


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


Act = Callable[[Path, argparse.Namespace], int]
Describe = Callable[[argparse.ArgumentParser], None]
ACTIONS: dict[str, tuple[Act, Describe]] = {
    "validate": (validate, _describe_validate),
    "stats": (stats, _describe_stats),
    "merge": (merge, _describe_merge),
    "resplit": (resplit, _describe_resplit),
    "export": (export, _describe_export),
    "restore": (restore, _describe_restore),
    "filter": (filter_again, _describe_filter),
    "rename": (rename, _describe_rename),
    "edit": (edit, _describe_edit),
    "undo": (undo, _describe_step),
    "redo": (redo, _describe_step),
}
