"""What came of it: the account of every second, the statistics, merging with another project, and the download."""

import time
from pathlib import Path
from typing import Any

import gradio as gr

from utils import paths
from utils.dataset.export import export
from utils.dataset.manifest import MANIFEST
from utils.dataset.merge import Plan, merge
from utils.errors import AmharicTtsError, DataError
from utils.paths import Project
from utils.storage import make_folder
from utils.ui import faults
from utils.ui.data import showing, starting
from utils.ui.data.shelf import Shelf
from utils.ui.page import PRIVATE, RAW, Page, handler
from utils.ui.views import note, refused, told
from utils.ui.words import say

EXPORTS = "exports"  # folder below that of the uploads


def build_result(page: Page, shelf: Shelf) -> None:
    """Lay out account and statistics; they follow the manifest."""
    summary = gr.HTML(elem_id="summary")
    with gr.Accordion("Where every second went", open=True):
        ledger = gr.HTML(elem_id="ledger")
    with gr.Accordion("Statistics", open=False):
        counted = gr.HTML(elem_id="statistics")
    seen = gr.State(None)

    def look(project: str, language: str, before: object) -> tuple[Any, ...]:
        """Show the dataset when it has changed since this visitor looked last."""
        try:
            state, *shown = _result(page.open(project), shelf, language)
        except AmharicTtsError as error:  # asked on every tick: it stays in its place
            state = faults.told(error, language)
            shown = [note(state), "", ""]
        return (gr.skip(),) * 4 if state == before else (state, *shown)

    gr.on(
        page.refresh,
        handler(look),
        [page.project, page.language, seen],
        [seen, summary, ledger, counted],
        **RAW,
        **PRIVATE,
    )


def _result(project: Project, shelf: Shelf, language: str) -> list[Any]:
    """Return a word for the state that is shown, then summary, ledger and statistics."""
    shelved = shelf.look(project.dataset)
    where = [str(project.root), language]
    if shelved is None:
        return [where, note(say(showing.NO_CLIPS, language)), "", ""]
    found = shelf.counted(project.dataset, shelved)
    state = [*where, list(map(list, shelved.signature)), list(map(list, found.signature)) if found else None]
    if found is None:
        counting = note(say("Counting …", language))
        return [state, showing.summary(shelved.contents, language), counting, counting]
    ledger, counted = showing.ledger(found.ledger, language), showing.counted(found.statistics, language)
    return [state, showing.summary(shelved.contents, language), ledger, counted]


def build_merge(page: Page, around: gr.Accordion) -> None:
    """Add the dataset of another project to this one; what would happen is said first."""
    other = gr.Dropdown(
        [],
        label="Project whose clips are added",
        info="It is only read; what is here stays as it is.",
        interactive=True,
        elem_id="merge-other",
    )
    with gr.Row():
        ask = gr.Button("What would happen", elem_id="merge-ask", min_width=160)
        do = gr.Button("Merge into this project", variant="primary", elem_id="merge-do", min_width=160)
    said = gr.HTML(elem_id="merge-said")

    def offer(project: str) -> Any:  # noqa: ANN401  # gradio's updates have no type
        return gr.update(choices=others(page.output, project))

    def merged(project: str, name: str | None, language: str, *, dry_run: bool) -> str:
        try:
            plan = add_dataset(page, project, name, dry_run=dry_run)
        except AmharicTtsError as error:
            return refused(error, language)
        done = say("Nothing was changed yet." if dry_run else "This was done.", language)
        return told("good", *showing.merged(counts(plan), language), done)

    @handler
    def ask_first(project: str, name: str | None, language: str) -> str:
        return merged(project, name, language, dry_run=True)

    @handler
    def join(project: str, name: str | None, language: str) -> str:
        return merged(project, name, language, dry_run=False)

    given = [page.project, other, page.language]
    gr.on([page.blocks.load, page.project.change, around.expand], offer, page.project, other, **RAW, **PRIVATE)
    ask.click(ask_first, given, said, api_name="plan_merge", **RAW)
    do.click(join, given, said, api_name="merge_datasets", **RAW)


def add_dataset(page: Page, project: str, name: str | None, *, dry_run: bool) -> Plan:
    """Merge the dataset of another project into this one."""
    if not name:
        raise DataError("No project is chosen.", hint="Choose the one whose clips are added.")
    target, source = page.open(project), page.open(name)
    if not dry_run:
        starting.refuse_while_busy(target)
    return merge(target.dataset, source.dataset, dry_run=dry_run)


def others(output: Path, project: str) -> list[str]:
    """List the other projects that hold clips."""
    names = paths.list_projects(output)
    return [name for name in names if name != project and (Project(output / name).dataset / MANIFEST).is_file()]


def counts(plan: Plan) -> dict[str, int]:
    """Return the figures of a merge by their names."""
    return {
        "recordings": len(plan.recordings),
        "clips": sum(len(clips) for _, clips in plan.recordings),
        "known": plan.known,
        "duplicates": plan.duplicates,
        "missing": len(plan.missing),
    }


def build_download(page: Page) -> None:
    """Pack the clips in use for a download."""
    button = gr.Button("Make a zip of the dataset", elem_id="export")
    said = gr.HTML(elem_id="export-said")
    file = gr.File(label="Dataset", visible=False, interactive=False, elem_id="export-file")

    @handler
    def pack(project: str, language: str) -> tuple[Any, ...]:
        try:
            place = page.open(project)
            target = zip_name(page.output, place)
            export(place.dataset, target, "zip")
        except AmharicTtsError as error:
            return refused(error, language), gr.update(visible=False)
        return "", gr.update(value=str(target), visible=True)

    button.click(pack, [page.project, page.language], [said, file], api_name="export_dataset", **RAW)


def zip_name(output: Path, project: Project) -> Path:
    """Name a new archive in the folder whose files the page may give away."""
    folder = output / paths.UPLOADS.name / EXPORTS
    make_folder(folder)
    return folder / f"{project.root.name}-dataset-{time.strftime('%Y%m%d-%H%M%S')}.zip"
