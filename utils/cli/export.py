"""Write a model into a folder that others can use, also with plain coqui-tts; zip it or push it to the hub.

The weights are stored in half precision, adapters are merged in, and what only training needs is left out.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from utils.speech.open_model import Opened
    from utils.workspace.publishing import PublishedModel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the model, the folder, and what shall be in it."""
    from utils.core.paths import OUTPUT

    parser.add_argument("model", help="a finished model, a project, a run, a checkpoint, a version or a coqui folder")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where to write it")
    parser.add_argument("--base", default="", help="the model that a checkpoint came from, where it was moved")
    parser.add_argument(
        "--half", action=argparse.BooleanOptionalAction, default=True, help="half precision (default: on)"
    )
    parser.add_argument("--for-training", action="store_true", help="keep the files that only training needs")
    parser.add_argument("--adapter", action="store_true", help="only the adapter of a run with enable_lora")
    parser.add_argument("--safetensors", action="store_true", help="the weights once more, as model.safetensors")
    parser.add_argument("--zip", action="store_true", help="also one file, FOLDER.zip")
    parser.add_argument("--report", type=Path, metavar="FILE", help="a report.json of evaluate, for the model card")
    parser.add_argument("--push", default="", metavar="OWNER/NAME", help="upload it; the token comes from HF_TOKEN")
    parser.add_argument("--public", action="store_true", help="with --push: a new repository is for everybody")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder of the projects (default: output/)")


def run(arguments: argparse.Namespace) -> int:
    """Write the model and say how large it is."""
    from utils.workspace.hub_upload import check_push, push
    from utils.workspace.publishing import PublishOptions, publish, publish_adapter

    if arguments.push:
        check_push(arguments.push)
    opened = opened_model(arguments)
    for notice in opened.notices:
        print(f"Notice: {notice}")
    parts = PublishOptions(arguments.half, arguments.for_training, arguments.safetensors, arguments.zip)
    card = described(opened, arguments)
    done = (publish_adapter if arguments.adapter else publish)(opened, arguments.out, parts, card)
    tell(done)
    if arguments.push:
        print(f"Pushed: {push(done.folder, arguments.push, public=arguments.public)}")
    return 0


def opened_model(arguments: argparse.Namespace) -> "Opened":
    """Open the model; in full precision an adapter is merged anew, because stored weights were rounded afterwards."""
    from utils.speech.model_lookup import locate
    from utils.speech.open_model import open_model
    from utils.xtts.checkpoints import ADAPTER

    place = locate(arguments.model, arguments.output)
    merge = not arguments.half and not arguments.adapter and (place / ADAPTER).is_file()
    return open_model(place, base=arguments.base or None, merge=merge, output=arguments.output)


def described(opened: "Opened", arguments: argparse.Namespace) -> str:
    """Write the model card."""
    from utils.workspace.model_card import write_card

    return write_card(opened, arguments.out.resolve().name, adapter=arguments.adapter, report=arguments.report)


def tell(done: "PublishedModel") -> None:
    """Print what was written and how large it is."""
    print(f"{done.folder}: {megabytes(done.after)}; before {megabytes(done.before)}.")
    for path in sorted(done.folder.iterdir()):
        print(f"  {path.name:<22} {megabytes(path.stat().st_size)}")
    if done.archive:
        print(f"{done.archive}: {megabytes(done.archive.stat().st_size)}.")


def megabytes(count: int) -> str:
    """Write a number of bytes for people."""
    return f"{count / 1e6:.1f} MB"
