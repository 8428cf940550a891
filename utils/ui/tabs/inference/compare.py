"""Compare: several models on the same sentences, side by side and in a blind test."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import gradio as gr

from utils.core.paths import Project
from utils.evaluation.blind_test import CHOICES, Choice
from utils.evaluation.report import EvaluationReport
from utils.evaluation.results import EvaluatedUtterance
from utils.runs.background_jobs import BackgroundJob
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, RAW_INPUTS, show_errors
from utils.ui.tabs.inference.context import (
    SAMPLES,
    Context,
    Snapshot,
    flag_text,
    job_status,
    player,
    settings,
    start_job,
    stop_button,
)
from utils.ui.tabs.inference.model import model_choices
from utils.ui.views import cell, message_box, note, table
from utils.workspace import comparisons

KIND = "compare"
VOTES = ("inference.first_better", "inference.second_better", "inference.equal")
DISABLED = [gr.update(interactive=False)] * 3


def build_compare(context: Context) -> dict[str, Any]:
    """Lay out the inputs and the result; return the widgets that the timer updates."""
    with gr.Row():
        models = gr.Dropdown(
            [],
            multiselect=True,
            max_choices=comparisons.MAX_MODELS,
            label=t("inference.models_to_compare"),
            info=t("inference.models_to_compare_hint"),
            interactive=True,
            elem_id="compare-models",
        )
        text = gr.Textbox(
            "\n".join(SAMPLES),
            label=t("inference.comparison_sentences"),
            info=t("inference.comparison_sentences_hint"),
            lines=4,
            max_lines=12,
            elem_id="compare-text",
        )
    with gr.Row():
        button = gr.Button(t("inference.compare"), elem_id="compare")
        stop = stop_button(context, KIND)
    status = gr.HTML(elem_id="compare-status")
    chosen = gr.Dropdown(
        [],
        label=t("inference.comparison"),
        info=t("inference.comparison_hint"),
        interactive=True,
        elem_id="comparisons",
    )
    result = gr.HTML(elem_id="compare-table")
    _bind_compare(context, button, models, text, status)

    @show_errors
    def show(project: str, name: str | None, language: str) -> str:
        if not name:
            return note(t("inference.no_comparison", language))
        return report_html(comparisons.load_report(context.project(project), name), language)

    inputs = [context.page.project, chosen, context.page.language]
    events: list[Any] = [chosen.change, context.page.language.change]
    gr.on(events, show, inputs, result, api_name="show_comparison", **RAW_INPUTS, **QUIET_EVENT)
    with gr.Accordion(t("inference.blind_test"), open=False):
        _build_blind_test(context, chosen)
    return {"compare_models": models, "compare_status": status, "compare_stop": stop, "comparisons": chosen}


def _bind_compare(context: Context, button: gr.Button, models: gr.Dropdown, text: gr.Textbox, status: gr.HTML) -> None:
    def compare(
        models: list[str] | None, sentences: str | None, page_language: str, project: str, **values: object
    ) -> str:
        def prepare() -> Callable[[BackgroundJob], str]:
            place, config, paths = context.project(project), settings(values), list(models or [])
            return lambda job: comparisons.compare(job, place, paths, sentences or "", config, context.page.output)

        return start_job(context, project, KIND, page_language, prepare)

    button.click(
        compare,
        inputs_kwargs={**context.inputs, "models": models, "sentences": text},
        outputs=status,
        api_name="compare",
        show_progress="hidden",
        **RAW_INPUTS,
    )


def compare_state(context: Context, snapshot: Snapshot, chosen: str | None) -> dict[str, Any]:
    """Return updates for the running comparison and the list of finished ones."""
    job, language = context.jobs.get(snapshot.name, KIND), snapshot.language
    names = comparisons.names(snapshot.project)
    picker: dict[str, Any] = {"choices": names}
    if chosen not in names:
        picker["value"] = job.result if job and job.result in names else next(iter(names), None)
    status, stop = job_status(job, language, lambda _: t("inference.comparison_ready", language))
    return {
        "compare_models": {"choices": model_choices(snapshot.models, language)},
        "compare_status": status,
        "compare_stop": stop,
        "comparisons": picker,
    }


def report_html(report: EvaluationReport, language: str) -> str:
    """Show each sentence with a player for each model."""
    by_model = {(one.text, one.checkpoint): one for one in report.utterances}
    texts = dict.fromkeys(one.text for one in sorted(report.utterances, key=lambda one: one.sentence))
    rows = [
        [cell(text), *(_cell(by_model.get((text, name)), report.folder, name, language) for name in report.checkpoints)]
        for text in texts
    ]
    medians = [cell(t("inference.real_time_factor", language), classes="mark")]
    for name in report.checkpoints:
        factors = sorted(one.real_time_factor for one in report.of(name) if one.real_time_factor)
        medians.append(cell(f"{factors[len(factors) // 2]:.2f}" if factors else "–"))
    titles = [t("inference.sentence", language), *report.checkpoints]
    return table(titles, [*rows, medians]) + "".join(note(text) for text in report.notes)


def _cell(utterance: EvaluatedUtterance | None, folder: Path, name: str, language: str) -> str:
    if utterance is None or not utterance.wav:
        return cell((utterance and utterance.error) or "–")
    factor = f"{utterance.real_time_factor:.2f}" if utterance.real_time_factor else "–"
    flags = "".join(message_box("warning", flag_text(flag.partition(": ")[2], language)) for flag in utterance.flags)
    return f"<td>{player(folder / utterance.wav, f'{name}: {utterance.text}')}{note(factor)}{flags}</td>"


# --- the blind test ---


def _build_blind_test(context: Context, chosen: gr.Dropdown) -> None:
    """Lay out one pair at a time; the files have names that do not reveal the models."""
    gr.Markdown(t("inference.blind_test_about"))
    voter = gr.Textbox(label=t("common.your_name"), info=t("inference.your_name_hint"), max_lines=1, elem_id="voter")
    start = gr.Button(t("inference.next_pair"), elem_id="next-pair")
    text = gr.HTML(elem_id="blind-text")
    with gr.Row():
        first = gr.Audio(label=t("inference.sample_1"), interactive=False, elem_id="blind-1", buttons=[])
        second = gr.Audio(label=t("inference.sample_2"), interactive=False, elem_id="blind-2", buttons=[])
    with gr.Row():
        buttons = [
            gr.Button(t(label), interactive=False, min_width=120, elem_id=f"vote-{choice}")
            for choice, label in zip(CHOICES, VOTES, strict=True)
        ]
    result = gr.HTML(elem_id="tally")
    token = gr.State("")
    outputs = [token, text, first, second, result, *buttons]

    @show_errors
    def next_pair(project: str, name: str | None, voter: str | None, language: str) -> tuple[Any, ...]:
        return pair_update(context.project(project), name, voter or "", language)

    def vote(choice: Choice) -> Callable[..., Any]:
        def voted(token: str, project: str, name: str | None, voter: str | None, language: str) -> tuple[Any, ...]:
            place = context.project(project)
            comparisons.save_vote(place, name, token, choice, voter or "")
            return pair_update(place, name, voter or "", language)

        return show_errors(voted)

    inputs = [context.page.project, chosen, voter, context.page.language]
    start.click(next_pair, inputs, outputs, api_name="next_pair", **RAW_INPUTS, **QUIET_EVENT)
    for button, choice in zip(buttons, CHOICES, strict=True):
        handle = vote(cast("Choice", choice))
        button.click(handle, [token, *inputs], outputs, trigger_mode="once", **RAW_INPUTS, **PRIVATE_EVENT)


def pair_update(project: Project, name: str | None, voter: str, language: str) -> tuple[Any, ...]:
    """Show the next pair, or the result once all pairs are judged."""
    if not name:
        return "", note(t("inference.compare_models_first", language)), None, None, "", *DISABLED
    pair, remaining, total = comparisons.next_pair(project, name, voter)
    if pair is None:
        done = t("inference.all_pairs_judged", language, total=total)
        lines = [str(tally) for tally in comparisons.tally(project, name)]
        return "", note(done), None, None, message_box("success", *lines), *DISABLED
    first, second = comparisons.anonymous_files(project, name, pair)
    values = {"number": total - remaining + 1, "total": total, "sentence": pair.text}
    title = note(t("inference.pair_of", language, **values))
    return pair.token, title, str(first), str(second), "", *[gr.update(interactive=True)] * 3
