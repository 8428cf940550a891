"""Renders the list of clips and the editor of the open clip as HTML; independent of gradio."""

import json
from collections.abc import Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from utils.amharic import explain
from utils.core.errors import AmharicTtsError
from utils.core.facts import from_json
from utils.core.storage import parse_json
from utils.core.wording import describe
from utils.dataset.clip import REASONS, Clip, with_fields
from utils.dataset.editor import HEARD, available_actions
from utils.dataset.facts import Reason
from utils.dataset.store import FINDING, PAGE_SIZE, ClipPage, Store, View
from utils.media import audio
from utils.media.audio import Samples
from utils.studio.paths import Project
from utils.ui import views
from utils.ui.html import html
from utils.ui.i18n import describe_error, t
from utils.ui.tabs import pronunciation
from utils.ui.views import button, file_url, html_cell, note, row, select_field, text_field
from utils.xtts.language_packs import AmharicPack
from utils.xtts.pronunciations import overrides

WAVE_RATE = 8000  # samples a second; the outline needs no more
WAVE_WIDTH, WAVE_HEIGHT = 600, 120
TITLES = ("data.play", "common.text", "data.seconds", "data.status")
MAX_AMBIGUOUS = 8  # words whose readings are offered
KEYS = {"approve": "⏎", "exclude": "⌫", "split": "S", "trim": "T"}  # that press a button
STATUSES = {
    "unchecked": "data.to_check",
    "all": "data.all_clips",
    "approved": "data.approved",
    "excluded": "data.not_in_use",
}
ORDERS = {
    "worst": "data.suspicious_first",
    "recording": "data.recording_order",
    "longest": "data.longest_first",
    "shortest": "data.shortest_first",
    "noisiest": "data.noisiest_first",
}
EXAMPLES = 10


# --- the list ---


def filters(view: View, counts: Mapping[str, int], reasons: dict[str, int], page: ClipPage, undo: str) -> str:
    """Show what the list is filtered and ordered by; a change acts at once."""
    act = {"data_act": "show"}
    named = [("data.any_reason", ""), *((f"{reason_text(name)} ({count})", name) for name, count in reasons.items())]
    orders = [(label, order) for order, label in ORDERS.items()]
    number = {"type": "number", "min": 1, "max": page.pages, "value": page.number}
    more = row(
        select_field("reason", "data.exclusion_reason", named, "data.reason_filter_hint", view.reason, **act),
        select_field("order", "data.order", orders, "data.order_hint", view.order, **act),
        text_field("page", "data.page", "data.page_hint", **number, **act),
    )
    more = views.details("data.more_filters", more, "review-more")
    return html("clips.html", "filters", STATUSES, counts, view.status, more, undo)


def rows(page: ClipPage, chosen: str, folder: Path) -> str:
    if not page.clips:
        return note("data.no_matching_clips")
    urls = {clip.id: file_url(folder / clip.audio) for clip in page.clips if clip.audio}
    return html("clips.html", "rows", TITLES, page.clips, chosen, urls, _kind, _status)


def _kind(clip: Clip) -> str:
    """Return the colour of a clip's dot."""
    if clip.status == "excluded":
        return "loss"
    return "good" if clip.reason == "approved" else "doubt" if clip.other_text or clip.reason else "series-5"


def repair(store: Store) -> str:
    """Show that texts of the list fit other clips, with examples to listen to, and offer to repair it."""
    proposed = store.proposed()
    if not proposed:
        return ""
    rows = []
    for clip in store.find(list(proposed)[:EXAMPLES]).values():
        play = views.hear(store.folder / clip.audio, f"{t('data.play')}: {clip.text}")
        rows.append((html_cell(play), clip.text, with_fields(clip, proposed[clip.id]).text))
    finding = parse_json(store.meta(FINDING))
    finding["details"] = Path(str(finding.get("details"))).name  # the folder says nothing to a visitor
    found = describe(from_json(finding))
    titles = ("data.play", "data.text_of_list", "data.text_that_fits")
    offer = row(button("repair_list", t("data.repair_list", count=len(proposed)), "primary"))
    examples = views.element("div", views.table(titles, rows, classes="stack"), class_="examples")
    return views.message_box("warning", found) + offer + examples


def pager(page: ClipPage) -> str:
    """Show where the list is, with the ways on."""
    buttons = {"data.previous_page": page.number - 1, "data.next_page": page.number + 1}
    turn = "".join(button("show", key, page=number) for key, number in buttons.items() if 1 <= number <= page.pages)
    place = t("data.page_of", number=page.number, pages=page.pages, count=page.total)
    return row(turn, views.element("p", text=place, class_="hint", id="pager"))


def selected_actions() -> str:
    """Show what can be done with the ticked clips; hidden by the style sheet until one is ticked."""
    buttons = views.buttons("data.approve_selected", "data.exclude_selected", "data.restore_selected")
    return views.element("div", row(_reason_field("reason_for_all", "reviewed"), buttons), class_="selected")


def _reason_field(name: str, value: Reason) -> str:
    """Return a field for the reason of an exclusion; common ones are offered, others can be typed."""
    offered = "".join(views.element("option", value=reason_text(reason)) for reason in HEARD)
    field = text_field(name, "data.exclude_reason", value=reason_text(value), list=f"{name}s")
    return field + views.element("datalist", offered, id=f"{name}s")


# --- the editor ---


def _scores(clip: Clip) -> str:
    """Return what was measured of a clip."""
    scores = {
        "data.snr_db": (clip.scores.snr_db, ".1f"),
        "data.letters_per_second": (clip.scores.chars_per_second, ".1f"),
        "data.confidence": (clip.scores.confidence, ".2f"),
    }
    known = (f"{t(key)} {format(value, form)}" for key, (value, form) in scores.items() if value is not None)
    return views.joined(*known)


def reason_text(reason: str) -> str:
    """Return why clips are left out; a person's own words stay as they are."""
    return t(f"ReasonTotal.{reason}") if reason in REASONS else reason


def _status(clip: Clip) -> str:
    if clip.status == "excluded":
        return f"✗ {clip.note if clip.reason == 'other' else reason_text(clip.reason or '')}"
    if clip.is_doubted:
        return t("data.clip_doubted", reason=reason_text(clip.reason or ""))
    return f"✓ {t('data.clip_approved')}" if clip.reason else t("data.clip_in_use")


def place(page: ClipPage, name: str) -> str:
    """Return where a clip stands in its list, such as 3 / 7; nothing if it is not in it."""
    numbers = {clip.id: number for number, clip in enumerate(page.clips, 1)}
    return f"{(page.number - 1) * PAGE_SIZE + numbers[name]} / {page.total}" if name in numbers else ""


def editor(  # noqa: PLR0913, PLR0917  # one clip with all that surrounds it
    clip: Clip,
    following: Clip | None,
    draft: str,
    box: str,
    folder: Path,
    busy: str,
    placed: str = "",
    undo: str = "",
) -> str:
    """Show the open clip: what is known of it, its sound, its text, and what can be done with it.

    ``draft`` is the text as it stands in the ``box``; ``busy`` says why nothing can be changed now.
    """
    times = f"{_clock(clip.span.start)}-{_clock(clip.span.end)}"
    split = t(f"data.{clip.split}" if clip.split else "data.no_split")
    remark = f": {clip.note}" if clip.note and clip.reason != "other" else ""
    return html(
        "clips.html",
        "editor",
        clip,
        facts=views.joined(Path(clip.source).name, times, clip.speaker, split),
        kind=_kind(clip),
        status=_status(clip) + remark,
        place=placed,
        scores=_scores(clip),
        sound=_sound(clip, folder) if clip.audio else note("data.clip_without_audio"),
        box=box,
        actions=note(busy) if busy else _actions(clip, following, undo),
        other=differences(clip.text, clip.other_text) if clip.other_text else (),
        **_reading(draft, Project(folder.parent)),
    )


def _reading(text: str, project: Project) -> dict[str, Any]:
    """Return how a text is read, its words that have other readings, and the way to correct one."""
    pack = AmharicPack(overrides=overrides(project.pronunciations))
    reading = explain(pack.respell(text), pack.pronounced)
    ambiguous = [word for word in reading.words if {phones for phones, _ in word.others} - {word.phones}]
    more = views.details("common.pronunciation_preview", pronunciation.show(reading), "clip-explained")
    more += pronunciation.fix_fields("clip-fix")
    return {"phones": reading.phones, "ambiguous": ambiguous[:MAX_AMBIGUOUS], "more": more}


def differences(text: str, other: str) -> list[tuple[str, str]]:
    """Return the words of two texts with the tag of those that only one has: del for the first, ins for the other."""
    old, new = text.split(), other.split()
    parts = []
    for _, start, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if old[start:end] == new[first:last]:
            parts.append(("", " ".join(old[start:end])))
        else:
            pair = (("del", " ".join(old[start:end])), ("ins", " ".join(new[first:last])))
            parts += [(tag, words) for tag, words in pair if words]
    return parts


def _actions(clip: Clip, following: Clip | None, undo: str) -> str:
    available = [*available_actions(clip, following), "save_text"]

    def buttons(style: str, *names: str) -> str:
        shown = [name for name in names if name in available]
        return "".join(button(name, f"data.{name}", style, key=KEYS.get(name, "")) for name in shown)

    result = row(buttons("primary", "approve"), buttons("", "exclude", "restore", "split", "trim"), undo)
    reason = _reason_field("why", HEARD[0]) if "exclude" in available else ""
    others = buttons("quiet", "save_text", "merge_next")
    return result + row(others, reason) + (_marks(clip) if clip.audio else "")


def _marks(clip: Clip) -> str:
    """Return the fields of the places where a clip is trimmed or split."""
    seconds = round(clip.span.seconds, 2)
    values = {"start": 0, "end": seconds, "at": round(seconds / 2, 2)}
    shared = {"type": "number", "step": 0.01, "min": 0, "max": seconds, "data_key": f"{clip.id} {seconds}"}
    marks = "".join(text_field(name, f"data.mark_{name}", "", value=value, **shared) for name, value in values.items())
    play = html("views.html", "button", "data-part", "quiet", "data.play_selection")
    return views.details("data.marks", row(marks, play), "clip-cut")


def _sound(clip: Clip, folder: Path) -> str:
    path = folder / clip.audio
    player = views.element(
        "audio",
        controls=True,
        preload="metadata",
        src=file_url(path),
        aria_label=t("data.clip_audio"),
        data_seconds=f"{clip.span.seconds:.3f}",
    )
    try:
        path_data = _outline_of(path, clip.content)
    except AmharicTtsError as error:
        return note(describe_error(error))
    return html("clips.html", "wave", WAVE_WIDTH, WAVE_HEIGHT, path_data, _words(clip), player)


def _words(clip: Clip) -> list[tuple[str, str, str]]:
    """Return the aligned words of a clip, each with its start and its width in percent of the sound."""
    share = 100 / max(clip.span.seconds, 0.01)
    try:
        times = [(str(word), float(start), float(end)) for word, start, end in json.loads(clip.words or "[]")]
    except (ValueError, TypeError):  # damaged; the clip can be judged without
        return []
    return [(word, f"{start * share:.2f}", f"{(end - start) * share:.2f}") for word, start, end in times]


@lru_cache(maxsize=64)
def _outline_of(path: Path, content: str) -> str:  # noqa: ARG001  # other content is read anew
    return outline(audio.load(path, WAVE_RATE))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}:{rest:05.2f}"


def outline(samples: Samples) -> str:
    """Return the path around the loudest points of each stretch."""
    if not samples.size:
        return "M0 0"
    starts = np.linspace(0, samples.size, min(WAVE_WIDTH, samples.size) + 1).astype(int)[:-1]
    scale = WAVE_HEIGHT / 2 / max(1e-3, float(np.abs(samples).max()))
    step = WAVE_WIDTH / len(starts)
    upper, lower = (
        [f"{number * step:.0f} {WAVE_HEIGHT / 2 - scale * value:.1f}" for number, value in enumerate(values)]
        for values in (np.maximum.reduceat(samples, starts), np.minimum.reduceat(samples, starts))
    )
    return f"M{'L'.join([*upper, *reversed(lower)])}Z"
