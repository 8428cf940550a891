"""What the tab shows of recordings, of a preparation and of a dataset, as HTML; knows nothing of gradio."""

from collections.abc import Mapping, Sequence
from html import escape

from utils.core.events import Event, as_number, format_event
from utils.dataset import lengths
from utils.dataset.ledger import Entry, Ledger
from utils.dataset.queries import Total
from utils.dataset.statistics import Statistics
from utils.dataset.voice_recordings import Progress
from utils.runs import ACTIVE, Run, State
from utils.ui import views
from utils.ui.i18n import t, translate
from utils.ui.views import cell, details, message_box, note, table
from utils.workspace.uploads import InputPreview, MediaPair

MOST_ROWS = 100
MOST_FAULTS = 20
NO_CLIPS = "data.no_clips"

CSS = """
.sounds { display: flex; flex-wrap: wrap; gap: 4px; margin: 4px 0; padding: 0 !important; list-style: none !important; }
.sounds li { font-size: 12px; border: 1px solid var(--border-color-primary); border-radius: 4px; padding: 1px 6px;
  margin: 0 !important; }
.sounds li.none { border-color: #b91c1c; font-weight: 700; }
.share { display: flex; height: 14px; border-radius: 4px; overflow: hidden; margin: 6px 0; }
.share i { display: block; min-width: 1px; }
.share .kept, .key .kept::before { background: #047857; }
.share .between, .key .between::before { background: #64748b; }
.share .aside, .key .aside::before { background: #b45309; }
.key span { margin-inline-end: 14px; font-size: var(--text-sm); }
.key span::before { content: ""; display: inline-block; width: 12px; height: 12px; border-radius: 2px;
  margin-inline-end: 5px; vertical-align: -1px; }
#sentence textarea { font-size: 1.5rem; line-height: 1.7; }
"""


def looked(found: InputPreview, language: str) -> str:
    """Show what a place holds and which words go with which sound."""
    if found.is_remote:
        return note(t("data.downloaded_by_step_1", language))
    if found.has_tables:
        return note(t("data.dataset_with_audio", language))
    shown = ""
    if found.clips:
        shown += note(t("data.dataset_clip_count", language, count=found.clips))
    if found.pairs or found.unmatched:
        shown += pairs(found, language)
    more = t("data.more_not_shown", language, count=len(found.problems) - MOST_FAULTS)
    rest = [more] if len(found.problems) > MOST_FAULTS else []
    return shown + message_box("warning", *found.problems[:MOST_FAULTS], *rest)


def pairs(found: InputPreview, language: str) -> str:
    """Show which subtitle goes with which sound, and what has none."""
    rows = [
        (cell(pair.media.name), cell(_subtitles(pair)), cell(t(words_of(pair), language)))
        for pair in found.pairs[:MOST_ROWS]
    ]
    rows += [
        (
            cell("–"),
            cell(path.name),
            cell(t("data.no_matching_media", language), classes="warn"),
        )
        for path in found.unmatched[:MOST_ROWS]
    ]
    titles = [t(title, language) for title in ("data.media_file", "common.subtitles", "data.text_source")]
    return table(titles, rows, classes="stack") + _rest(len(found.pairs), language)


def _rest(count: int, language: str) -> str:
    """Say how many rows a table leaves out."""
    more = count - MOST_ROWS
    return note(t("data.more_not_shown", language, count=more)) if more > 0 else ""


def words_of(pair: MediaPair) -> str:
    """Say where the words of a recording come from."""
    if pair.subtitles:
        return "data.its_subtitles"
    return "data.its_text_file" if pair.has_transcript else "data.speech_recognition"


def _subtitles(pair: MediaPair) -> str:
    names = (f"{one.path.name} ({one.language})" if one.language else one.path.name for one in pair.subtitles)
    return ", ".join(names) or "–"


def facts(run: Run, state: State, language: str) -> str:
    """Show what a preparation is doing, how far it is, how long it will take, and what it complained about."""
    events = views.newest_events(run)
    complaints = [event for event in events if event["kind"] in {"bad", "warning"}]
    sentences = dict.fromkeys(complaint(event) for event in reversed(complaints))
    return (
        views.run_head(run, state, language)
        + how_far(events, at_work=state.status in ACTIVE, language=language)
        + message_box("warning", *list(sentences)[:MOST_FAULTS], aloud=False)
    )


def how_far(events: Sequence[Event], *, at_work: bool, language: str) -> str:
    """Show the bar with the share that is done and the time that is left."""
    latest = next((event for event in reversed(events) if event["kind"] in {"progress", "fetched"}), None)
    if latest is None:
        return note(t("data.scanning", language)) if at_work else ""
    percent = as_number(latest.get("percent"))
    if percent is None:
        return note(format_event(latest))
    if latest["kind"] == "fetched":
        words = t("data.downloading", language, name=latest.get("name"), percent=round(percent))
    else:
        words = t("data.recordings_progress", language, step=latest.get("step"), total=latest.get("total"))
        words += f" · {percent:.0f} %"
        left = views.time_left(latest.get("seconds_left"), language) if at_work else ""
        words += f" · {left}" if left else ""
    return views.progress(words, percent, 100)


def complaint(event: Event) -> str:
    """Say what a file was complained of for."""
    name = str(event.get("path") or "").replace("\\", "/").rpartition("/")[2]
    sentence = str(event.get("reason") or event.get("message") or "")
    return sentence if not name or name in sentence else f"{name}: {sentence}"


def summary(totals: Mapping[str, Total], recordings: int, language: str) -> str:
    """Show the size of a dataset in one line that wraps."""
    cards = {
        "data.recordings": str(recordings),
        "data.clips_in_use": f"{totals['kept'].clips} · {minutes(totals['kept'].seconds, language)}",
        "data.not_in_use": f"{totals['excluded'].clips} · {minutes(totals['excluded'].seconds, language)}",
        "common.training": str(totals["train"].clips),
        "common.evaluation": str(totals["eval"].clips),
    }
    return views.cards(cards, language)


def ledger(found: Ledger, language: str) -> str:
    """Account for every second: a bar, a sum for each fate, and a line for each recording."""
    total = found.seconds
    fates: dict[str, tuple[str, float]] = {
        "common.in_use": ("kept", found.kept),
        "data.pauses": ("between", found.between),
        **{reason: ("aside", seconds) for reason, seconds in found.aside.items()},
    }
    bar = "".join(
        f'<i class="{kind}" style="flex: {seconds:.3f}"></i>' for kind, seconds in fates.values() if seconds > 0
    )
    rows = [
        (
            cell(_fate(name, kind, language)),
            cell(minutes(seconds, language)),
            cell(f"{100 * seconds / (total or 1):.1f} %"),
        )
        for name, (kind, seconds) in fates.items()
    ]
    rows.append(
        (cell(t("data.all_recordings", language), classes="mark"), cell(minutes(total, language)), cell("100 %"))
    )
    titles = [t(title, language) for title in ("data.outcome", "common.length", "data.share")]
    keys = (("kept", "common.in_use"), ("between", "data.pauses"), ("aside", "data.not_in_use"))
    key = "".join(f'<span class="{kind}">{escape(t(name, language))}</span>' for kind, name in keys)
    unused = [f"{_name(entry)}: {entry.fault}" for entry in found.faults]
    return (
        f'<div class="share" aria-hidden="true">{bar}</div><div class="key">{key}</div>{table(titles, rows)}'
        + details(t("data.by_recording", language), _entries(found, language))
        + message_box("error", *unused[:MOST_FAULTS], aloud=False)
    )


def _fate(name: str, kind: str, language: str) -> str:
    return f"{t('data.not_in_use', language)}: {translate(name, language)}" if kind == "aside" else t(name, language)


def _entries(found: Ledger, language: str) -> str:
    entries = [entry for entry in found.entries if not entry.fault]
    rows = [
        (
            cell(_name(entry)),
            cell(minutes(entry.seconds, language)),
            cell(minutes(entry.kept, language)),
            cell(minutes(sum(entry.aside.values()), language)),
            cell(
                ", ".join(
                    f"{translate(why, language)} {minutes(seconds, language)}" for why, seconds in entry.aside.items()
                )
            ),
        )
        for entry in entries[:MOST_ROWS]
    ]
    titles = [
        t(title, language)
        for title in ("data.recording", "common.length", "common.in_use", "data.not_in_use", "data.why")
    ]
    return table(titles, rows, classes="stack") + _rest(len(entries), language)


def counted(found: Statistics, language: str) -> str:
    """Show the statistics that are no charts."""
    return _facts(found, language) + _sounds(found, language)


def _facts(found: Statistics, language: str) -> str:
    rows = [("data.speakers", ", ".join(f"{name} {minutes(seconds, language)}" for name, seconds in speakers(found)))]
    if found.seconds:
        rows += [
            (
                "data.length_percentile",
                _seconds(lengths.percentile(found.seconds, 99.5), ".2f", language),
            ),
            ("data.suggested_max_length", _seconds(lengths.suggested(found.seconds), "g", language)),
        ]
    if found.phonemes:
        there = len(found.phonemes) - len(found.missing)
        rows.append(("data.phones_present", t("common.used_of_total", language, used=there, total=len(found.phonemes))))
        rows.append(("data.phones_missing", " ".join(found.missing) or t("common.none", language)))
    titles = [t(title, language) for title in ("common.what", "data.how_much")]
    return table(titles, [(cell(t(name, language)), cell(text)) for name, text in rows])


def speakers(found: Statistics) -> Sequence[tuple[str, float]]:
    """Return the speakers who are heard most."""
    return list(found.speakers.items())[:12]


def _sounds(found: Statistics, language: str) -> str:
    if not found.phonemes:
        return ""
    return details(t("data.phone_counts", language), sound_list(found.phonemes))


def sound_list(counts: Mapping[str, int]) -> str:
    """List sounds with how often each occurs."""
    items = (
        f"<li{'' if count else ' class=none'}>{escape(sound)} × {count}</li>"
        for sound, count in sorted(counts.items(), key=lambda item: item[1])
    )
    return f'<ul class="sounds">{"".join(items)}</ul>'


def reading(found: Progress, language: str) -> str:
    """Show how far somebody has come with reading sentences."""
    words = t(
        "data.takes_progress",
        language,
        takes=found.takes,
        time=minutes(found.seconds, language),
        sounds=found.sounds,
        total=found.total,
    )
    missing = ""
    if found.takes and found.missing:
        missing = note(t("data.phones_still_missing", language, sounds=" ".join(found.missing)))
    elif found.takes:
        missing = note(t("data.all_phones_recorded", language))
    return views.progress(words, found.sounds, found.total) + missing


def minutes(seconds: float, language: str) -> str:
    """Write a length; what is shorter than a minute in seconds."""
    return (
        _seconds(seconds, ".1f", language)
        if seconds < 60
        else t("data.count_minutes", language, count=f"{seconds / 60:.1f}")
    )


def _seconds(seconds: float, form: str, language: str) -> str:
    return t("data.count_seconds", language, count=format(seconds, form))


def merged(plan: Mapping[str, int], language: str) -> list[str]:
    """Say what a merge does, or would do, in sentences."""
    sentences = {
        "recordings": "data.merge_recordings",
        "clips": "data.merge_clips",
        "known": "data.merge_known",
        "duplicates": "data.merge_duplicates",
        "missing": "data.merge_missing",
    }
    always = {"recordings", "clips"}
    return [t(sentences[name], language, count=count) for name, count in plan.items() if count or name in always]


def _name(entry: Entry) -> str:
    return entry.source.replace("\\", "/").rpartition("/")[2] or entry.source
