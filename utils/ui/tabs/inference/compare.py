"""Several models on the same sentences, side by side, and judged without their names."""

from pathlib import Path
from typing import Any, cast

import gradio as gr

from utils.core.errors import AmharicTtsError
from utils.core.paths import Project
from utils.evaluation.blind_test import CHOICES, Choice
from utils.evaluation.report import EvaluationReport
from utils.evaluation.results import Utterance
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, RAW_INPUTS
from utils.ui.tabs.inference import model_choices, render
from utils.ui.tabs.inference.context import Room, Sight, fault, settings
from utils.ui.tabs.inference.job_panel import Heard, begin, state_of, stop_button
from utils.ui.tabs.inference.text_input import SAMPLES
from utils.ui.views import cell, message_box, note, table
from utils.workspace import comparisons
from utils.workspace.comparisons import Compared, Step

COMPARE = "compare"


def build_compare(room: Room) -> dict[str, Any]:
    """Lay out what is compared, and what came of it; return what the clock fills."""
    with gr.Row():
        models = gr.Dropdown(
            [],
            multiselect=True,
            max_choices=comparisons.MOST,
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
        stop = stop_button(room, COMPARE)
    status = gr.HTML(elem_id="compare-status")
    chosen = gr.Dropdown(
        [],
        label=t("inference.comparison"),
        info=t("inference.comparison_hint"),
        interactive=True,
        elem_id="comparisons",
    )
    shown = gr.HTML(elem_id="compare-table")
    _tie_compare(room, button, models, text, status)

    def show(project: str, name: str | None, language: str) -> str:
        try:
            if not name:
                return note(t("inference.no_comparison", language))
            return side_by_side(comparisons.report_of(room.open(project), name), language)
        except AmharicTtsError as error:
            return fault(error, language)

    given = [room.page.project, chosen, room.page.language]
    events: list[Any] = [chosen.change, room.page.language.change]
    gr.on(events, show, given, shown, api_name="show_comparison", **RAW_INPUTS, **QUIET_EVENT)
    with gr.Accordion(t("inference.blind_test"), open=False):
        build_blind(room, chosen)
    return {"compare_models": models, "compare_status": status, "compare_stop": stop, "comparisons": chosen}


def _tie_compare(room: Room, button: gr.Button, models: gr.Dropdown, text: gr.Textbox, status: gr.HTML) -> None:
    def compare(
        models: list[str] | None, sentences: str | None, page_language: str, project: str, **values: object
    ) -> str:
        try:
            place, config, named = room.open(project), settings(values), list(models or [])
            if len(set(named)) < comparisons.FEWEST:
                return message_box("error", t("inference.choose_two_models", page_language))
        except AmharicTtsError as error:
            return fault(error, page_language)
        output = room.page.output
        return begin(
            room,
            project,
            COMPARE,
            lambda: comparisons.compare(place, named, sentences or "", config, output),
            page_language,
        )

    button.click(
        compare,
        inputs_kwargs={**room.given, "models": models, "sentences": text},
        outputs=status,
        api_name="compare",
        show_progress="hidden",
        **RAW_INPUTS,
    )


def compare_state(room: Room, sight: Sight, chosen: str | None) -> dict[str, Any]:
    """Say how far a comparison is, and list those that are over."""
    errand, language = room.errands.look(sight.name, COMPARE), sight.language
    names = comparisons.names(sight.place)
    picker: dict[str, Any] = {"choices": names}
    fresh = errand.last.name if errand and isinstance(errand.last, Compared) else None
    if chosen not in names:
        picker["value"] = fresh if fresh in names else names[0] if names else None
    status, stop = state_of(errand, language, _heard)
    return {
        "compare_models": {"choices": model_choices.choices(sight.models, language)},
        "compare_status": status,
        "compare_stop": stop,
        "comparisons": picker,
    }


def _heard(item: object, language: str) -> Heard | None:
    if isinstance(item, Compared):
        return Heard(t("inference.comparison_ready", language), is_result=True)
    return Heard(item.stage, item.step, item.total) if isinstance(item, Step) else None


def side_by_side(report: EvaluationReport, language: str) -> str:
    """Show each sentence with a player for each model."""
    by = {(one.text, one.checkpoint): one for one in report.utterances}
    texts = list(dict.fromkeys(one.text for one in sorted(report.utterances, key=lambda one: one.sentence)))
    rows = [
        [cell(text), *(_told_by(by.get((text, name)), report.folder, name, language) for name in report.checkpoints)]
        for text in texts
    ]
    means = [cell(t("inference.real_time_factor", language), classes="mark")]
    for name in report.checkpoints:
        speeds = [one.real_time_factor for one in report.of(name) if one.real_time_factor]
        means.append(cell(f"{sorted(speeds)[len(speeds) // 2]:.2f} s" if speeds else "–"))
    titles = [t("inference.sentence", language), *report.checkpoints]
    return table(titles, [*rows, means]) + "".join(note(text) for text in report.notes)


def _told_by(one: Utterance | None, folder: Path, name: str, language: str) -> str:
    if one is None:
        return cell("–")
    if not one.wav:
        return cell(one.error or "–")
    sound = render.player(folder / one.wav, f"{name}: {one.text}")
    speed = f"{one.real_time_factor:.2f}" if one.real_time_factor else "–"
    flags = "".join(message_box("warning", render.flag(flag.partition(": ")[2], language)) for flag in one.flags)
    return f"<td>{sound}{note(speed)}{flags}</td>"


def build_blind(room: Room, chosen: gr.Dropdown) -> None:
    """Lay out one pair at a time; the files have names that tell nothing."""
    gr.Markdown(t("inference.blind_test_about"))
    voter = gr.Textbox(label=t("common.your_name"), info=t("inference.your_name_hint"), max_lines=1, elem_id="voter")
    begin_ = gr.Button(t("inference.next_pair"), elem_id="next-pair")
    text = gr.HTML(elem_id="blind-text")
    with gr.Row():
        first = gr.Audio(label=t("inference.sample_1"), interactive=False, elem_id="blind-1", buttons=[])
        second = gr.Audio(label=t("inference.sample_2"), interactive=False, elem_id="blind-2", buttons=[])
    with gr.Row():
        buttons = [
            gr.Button(t(words), interactive=False, min_width=120, elem_id=f"vote-{choice}")
            for choice, words in zip(
                CHOICES, ("inference.first_better", "inference.second_better", "inference.equal"), strict=True
            )
        ]
    result = gr.HTML(elem_id="tally")
    token = gr.State("")
    outputs = [token, text, first, second, result, *buttons]

    def look(project: str, name: str | None, voter: str | None, language: str) -> tuple[Any, ...]:
        try:
            return pair_of(room.open(project), name, voter or "", language)
        except AmharicTtsError as error:
            return "", fault(error, language), None, None, "", *[gr.update(interactive=False)] * 3

    def vote(choice: str) -> Any:  # noqa: ANN401  # a handler
        def voted(token: str, project: str, name: str | None, voter: str | None, language: str) -> tuple[Any, ...]:
            try:
                comparisons.vote(room.open(project), name, token, cast("Choice", choice), voter or "")
            except AmharicTtsError as error:
                return "", fault(error, language), None, None, "", *[gr.update(interactive=False)] * 3
            return look(project, name, voter, language)

        return voted

    given = [room.page.project, chosen, voter, room.page.language]
    begin_.click(look, given, outputs, api_name="next_pair", **RAW_INPUTS, **QUIET_EVENT)
    for button, choice in zip(buttons, CHOICES, strict=True):
        button.click(vote(choice), [token, *given], outputs, trigger_mode="once", **RAW_INPUTS, **PRIVATE_EVENT)


def pair_of(place: Project, name: str | None, voter: str, language: str) -> tuple[Any, ...]:
    """Show the next pair; when there is none left, what the votes say."""
    if not name:
        return (
            "",
            note(t("inference.compare_models_first", language)),
            None,
            None,
            "",
            *[gr.update(interactive=False)] * 3,
        )
    pair, left, total = comparisons.next_pair(place, name, voter)
    if pair is None:
        said = [str(one) for one in comparisons.tally(place, name)]
        over = t("inference.all_pairs_judged", language, total=total)
        return "", note(over), None, None, message_box("success", *said), *[gr.update(interactive=False)] * 3
    one, other = comparisons.neutral(place, name, pair)
    values = {"number": total - left + 1, "total": total, "sentence": pair.text}
    head = t("inference.pair_of", language, **values)
    return pair.token, note(head), str(one), str(other), "", *[gr.update(interactive=True)] * 3
