"""Renders the list of clips and the editor of the open clip as HTML; independent of gradio."""

from collections.abc import Sequence
from functools import lru_cache
from html import escape
from pathlib import Path

import numpy as np

from utils.amharic import explain
from utils.core import wording
from utils.core.errors import AmharicTtsError
from utils.dataset.clip import Clip
from utils.dataset.editor import HEARD, available_actions
from utils.dataset.facts import Reason
from utils.dataset.store import ClipPage, View
from utils.media import audio
from utils.media.audio import Samples
from utils.studio.paths import Project
from utils.ui import views
from utils.ui.i18n import describe_error, t
from utils.ui.tabs import pronunciation
from utils.ui.views import attributes, button, cell, file_url, note, row, select_field, text_field
from utils.xtts.language_packs import AmharicPack
from utils.xtts.pronunciations import overrides

WAVE_RATE = 8000  # samples a second; the outline needs no more
WAVE_WIDTH, WAVE_HEIGHT = 600, 120
MAX_TEXT = 160  # characters in the table
TITLES = ("data.choose", "data.play", "common.text", "data.seconds", "data.status")
STATUSES = {
    "kept": "common.in_use",
    "approved": "data.approved",
    "excluded": "data.not_in_use",
    "all": "data.all_clips",
}
ORDERS = {
    "worst": "data.suspicious_first",
    "recording": "data.recording_order",
    "longest": "data.longest_first",
    "shortest": "data.shortest_first",
    "noisiest": "data.noisiest_first",
}
MARKS = ("start", "end", "at")


# --- the list ---


def filters(view: View, reasons: dict[str, int], page: ClipPage, language: str) -> str:
    """Show what the list is filtered and ordered by; a change acts at once."""

    def choice(name: str, label: str, items: dict[str, str], chosen: str, hint: str) -> str:
        hint = t(hint, language)
        choices = [(text, value) for value, text in items.items()]
        return select_field(name, t(label, language), choices, hint, chosen, data_act="show")

    named = [{value: t(key, language) for value, key in keys.items()} for keys in (STATUSES, ORDERS)]
    counts = {name: f"{reason_text(name, language)} ({count})" for name, count in reasons.items()}
    counts = {"": t("data.any_reason", language)} | counts
    search, hint = t("data.search", language), t("data.search_hint", language)
    number = {"type": "number", "min": 1, "max": page.pages, "value": page.number, "data_act": "show"}
    more = row(
        choice("reason", "data.exclusion_reason", counts, view.reason, "data.reason_filter_hint"),
        choice("order", "data.order", named[1], view.order, "data.order_hint"),
        text_field("page", t("data.page", language), t("data.page_hint", language), **number),
    )
    return row(
        choice("status", "data.which_clips", named[0], view.status, "data.approved_hint"),
        text_field("search", search, hint, type="search", data_act="show"),
    ) + views.details(t("data.more_filters", language), more, "review-more")


def rows(page: ClipPage, chosen: str, folder: Path, language: str) -> str:
    if not page.clips:
        return note(t("data.no_matching_clips", language))
    titles = [t(title, language) for title in TITLES]
    html = views.table(titles, [_row(clip, folder, language) for clip in page.clips], classes="stack")
    select_all = f'<input type="checkbox" data-all="1" aria-label="{escape(t("data.select_page", language))}">'
    html = html.replace(f">{escape(titles[0])}<", f">{select_all}<", 1)
    box = f'<td><input type="checkbox" data-tick="{escape(chosen)}"'
    return html.replace(f"<tr>{box}", f'<tr class="chosen">{box}', 1) if chosen else html


def _row(clip: Clip, folder: Path, language: str) -> Sequence[str]:
    name, text = escape(clip.id), clip.text[:MAX_TEXT] or f"({t('data.no_text', language)})"
    tick, play = (escape(f"{t(f'data.{action}', language)}: {text}") for action in ("select", "play"))
    url = file_url(folder / clip.audio)
    player = f'<button type="button" class="play" data-play="{url}" aria-label="{play}">▶</button>'
    return (
        f'<td><input type="checkbox" data-tick="{name}" aria-label="{tick}"></td>',
        f"<td>{player if clip.audio else '–'}</td>",
        f'<td><button type="button" class="text" data-act="open" data-clip="{name}">{escape(text)}</button></td>',
        cell(f"{clip.span.seconds:.1f}", classes="number"),
        cell(_status(clip, language), classes="mark warn" if clip.status == "excluded" else "mark"),
    )


def pager(page: ClipPage, undo: str, language: str) -> str:
    """Show where the list is, with the ways on; ``undo`` is the label of the last edit's button."""
    buttons = {"data.previous_page": page.number - 1, "data.next_page": page.number + 1}
    turn = [
        button("show", t(key, language), page=number) for key, number in buttons.items() if 1 <= number <= page.pages
    ]
    place = t("data.page_of", language, number=page.number, pages=page.pages, count=page.total)
    return row(*turn, button("undo", undo) if undo else "") + f'<p class="hint" id="pager">{escape(place)}</p>'


def selected_actions(language: str) -> str:
    """Show what can be done with the ticked clips; hidden by the style sheet until one is ticked."""
    buttons = views.buttons("data", ("approve_selected", "exclude_selected", "restore_selected"), language)
    return f'<div class="selected">{row(_reason_field("reason_for_all", Reason.REVIEWED, language), buttons)}</div>'


def _reason_field(name: str, value: Reason, language: str) -> str:
    """Return a field for the reason of an exclusion; common ones are offered, others can be typed."""
    offered = "".join(f"<option {attributes(value=wording.describe(reason, language))}>" for reason in HEARD)
    label = t("data.exclude_reason", language)
    box = text_field(name, label, value=wording.describe(value, language), list=f"{name}s")
    return f'{box}<datalist id="{name}s">{offered}</datalist>'


# --- the editor ---


def _scores(clip: Clip, language: str) -> str:
    """Return what was measured of a clip."""
    scores = {
        "data.snr_db": (clip.scores.snr_db, ".1f"),
        "data.letters_per_second": (clip.scores.chars_per_second, ".1f"),
        "data.confidence": (clip.scores.confidence, ".2f"),
    }
    known = ((key, format(value, form)) for key, (value, form) in scores.items() if value is not None)
    return " · ".join(f"{t(key, language)} {value}" for key, value in known)


def reason_text(reason: str, language: str) -> str:
    """Return why clips are left out; a person's own words stay as they are."""
    return wording.describe(Reason(reason), language) if reason in list(Reason) else reason


def _status(clip: Clip, language: str) -> str:
    if clip.status == "excluded":
        return f"✗ {clip.note if clip.reason is Reason.OTHER else reason_text(clip.reason or '', language)}"
    is_approved = clip.reason is Reason.APPROVED
    return f"✓ {t('data.clip_approved', language)}" if is_approved else f"· {t('data.clip_in_use', language)}"


def editor(clip: Clip, following: Clip | None, draft: str, folder: Path, language: str, busy: str) -> str:
    """Show the open clip: what is known of it, its sound, its text, and what can be done with it.

    ``draft`` is the text as it stands in the box; ``busy`` says why nothing can be changed now.
    """
    split = t(f"data.{clip.split}", language) if clip.split else t("data.no_split", language)
    times = f"{_clock(clip.span.start)}-{_clock(clip.span.end)}"
    about = "" if clip.reason is Reason.OTHER else clip.note
    status = ": ".join(filter(None, (_status(clip, language), about)))
    facts = f"{status} · {Path(clip.source).name} · {times} · {clip.speaker} · {split}"
    head = f"<h3>{escape(clip.text or t('data.no_text', language))}</h3>{note(facts)}{note(_scores(clip, language))}"
    sound = _sound(clip, folder, language) if clip.audio else note(t("data.clip_without_audio", language))
    label, hint = (t(key, language) for key in ("data.clip_text", "data.clip_text_hint"))
    box = views.text_area("text", label, hint, clip.text, f"{clip.id} {clip.text}")
    pack = AmharicPack(overrides=overrides(Project(folder.parent).pronunciations))
    reading = explain(pack.respell(draft), pack.pronounced)
    reads = note(f"{t('common.sounds', language)}: {reading.phones}" if reading.phones else "")
    if clip.other_text:
        reads += note(f"{t('data.other_text', language)}: {clip.other_text}")
    preview = views.details(
        t("common.pronunciation_preview", language), pronunciation.show(reading, language), "clip-explained"
    )
    preview += pronunciation.fix_fields(language, "clip-fix")
    actions = note(busy) if busy else _actions(clip, following, language)
    return f'<input type="hidden" name="of" value="{escape(clip.id)}">{head}{sound}{box}{reads}{preview}{actions}'


def _actions(clip: Clip, following: Clip | None, language: str) -> str:
    available = available_actions(clip, following)

    def buttons(*names: str) -> str:
        shown = [name for name in names if name == "save_text" or name in available]
        return "".join(button(name, t(f"data.{name}", language), "primary" * (name == "approve")) for name in shown)

    result = row(buttons("approve", "save_text", "restore", "merge_next"))
    exclude = _reason_field("why", HEARD[0], language) + buttons("exclude") if "exclude" in available else ""
    result += f'<div class="line">{exclude}</div>'  # also when empty: the fields of the next row stay in their place
    if clip.audio:
        seconds = round(clip.span.seconds, 2)
        values = dict(zip(MARKS, (0, seconds, round(seconds / 2, 2)), strict=True))
        of = f"{clip.id} {seconds}"
        fields = (
            text_field(
                name,
                t(f"data.mark_{name}", language),
                type="number",
                step=0.01,
                min=0,
                max=seconds,
                value=value,
                data_key=of,
            )
            for name, value in values.items()
        )
        play = f'<button type="button" class="act" data-part="1">{escape(t("data.play_selection", language))}</button>'
        result += row(*fields) + row(play, buttons("trim", "split"))
    return result


def _sound(clip: Clip, folder: Path, language: str) -> str:
    path = folder / clip.audio
    shown = f'preload="metadata" data-seconds="{clip.span.seconds:.3f}"'
    player = views.audio_player(path, t("data.clip_audio", language), shown)
    try:
        path_data = _outline_of(path, clip.content)
    except AmharicTtsError as error:
        return note(describe_error(error, language))
    label = escape(t("data.clip_waveform", language))
    return (
        f'<div class="wave"><svg viewBox="0 0 {WAVE_WIDTH} {WAVE_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{label}"><path d="{path_data}"/></svg>'
        f'<i class="before"></i><i class="after"></i><i class="cut"></i><i class="now"></i></div>{player}'
    )


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
