"""Export a model to a folder for others, also for plain coqui-tts; optionally zip it or upload it to the hub.

Weights are stored in half precision, adapters are merged, and files that only training needs are left out.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from utils.cli.runs import add_output
from utils.core import integrations, wording

if TYPE_CHECKING:
    from utils.studio.publishing import PublishedModel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="finished model, project, run, checkpoint, base model or Coqui model folder")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="target folder")
    parser.add_argument("--base", default="", help="base model of a checkpoint, if it was moved")
    parser.add_argument(
        "--half", action=argparse.BooleanOptionalAction, default=True, help="store in half precision (default: on)"
    )
    parser.add_argument("--for-training", action="store_true", help="include the files that only training needs")
    parser.add_argument(
        "--portable",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="let programs speak it that know no Amharic, unmodified; one of their languages is replaced (default: on)",
    )
    parser.add_argument("--adapter", action="store_true", help="export only the LoRA adapter")
    parser.add_argument("--safetensors", action="store_true", help="also write model.safetensors")
    parser.add_argument("--zip", action="store_true", help="also write FOLDER.zip")
    parser.add_argument("--ebook2audiobook", action="store_true", help="write FOLDER.ebook2audiobook.zip instead")
    parser.add_argument("--report", type=Path, metavar="FILE", help="report.json of evaluate, for the model card")
    parser.add_argument("--push", default="", metavar="OWNER/NAME", help="upload to the hub with the token in HF_TOKEN")
    parser.add_argument("--public", action="store_true", help="with --push: make a new repository public")
    add_output(parser)


def print_sizes(published: "PublishedModel") -> None:
    print(f"{published.folder}: {published.after / 1e6:.1f} MB (before: {published.before / 1e6:.1f} MB)")
    for file in sorted(published.folder.iterdir()):
        print(f"  {file.name:<22} {file.stat().st_size / 1e6:.1f} MB")
    if published.archive:
        print(f"{published.archive}: {published.archive.stat().st_size / 1e6:.1f} MB")


def run(arguments: argparse.Namespace) -> int:
    from utils.studio.loading import chosen_model
    from utils.studio.model_card import write_card
    from utils.studio.models import find_model
    from utils.studio.publishing import PublishOptions, publish, publish_adapter
    from utils.xtts.checkpoints import ADAPTER

    if arguments.push:
        integrations.require("require_token")(arguments.push)
    path = find_model(arguments.model, arguments.output)
    # For full precision the adapter is merged again, because stored weights were rounded.
    merge = not arguments.half and not arguments.adapter and (path / ADAPTER).is_file()
    opened = chosen_model(path, arguments.base, arguments.output, merge=merge)
    for notice in opened.notices:
        print(f"Notice: {wording.describe(notice)}")
    options = PublishOptions(
        half=arguments.half,
        for_training=arguments.for_training,
        safetensors=arguments.safetensors,
        zip=arguments.zip,
        portable=arguments.portable,
        ebook=arguments.ebook2audiobook,
    )
    card = write_card(opened, arguments.out.resolve().name, adapter=arguments.adapter, report=arguments.report)
    published = (publish_adapter if arguments.adapter else publish)(opened, arguments.out, options, card)
    print_sizes(published)
    if arguments.push:
        push = integrations.require("push")
        print(f"Uploaded: {push(published.folder, arguments.push, public=arguments.public)}")
    return 0
