"""Renders recordings, a preparation and a dataset as HTML; independent of gradio."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from utils.core import wording
from utils.core.errors import AmharicTtsError
from utils.core.facts import Fact, Unrecognised, from_json
from utils.dataset import voice_recordings
from utils.dataset.facts import Bad, Ledger, Prepared, RecordingWarning
from utils.dataset.statistics import Account, Statistics, percentile, suggested_max_length
from utils.dataset.store import Total
from utils.dataset.voice_recordings import PhonemeCoverage
from utils.studio import uploads
from utils.studio.paths import Project
from utils.studio.run_state import State
from utils.studio.runs import Run
from utils.studio.uploads import InputPreview
from utils.ui import progress, views
from utils.ui.html import html
from utils.ui.i18n import describe_error, t
from utils.ui.tabs.data.clip_render import reason_text
from utils.ui.views import cell, details, message_box, note

MAX_ROWS = 100
MAX_PROBLEMS = 20
MAX_SPEAKERS = 12


def _table(titles: Iterable[str], rows: Iterable[Sequence[str]], language: str, classes: str = "") -> str:
    return views.table([t(title, language) for title in titles], rows, classes=classes)


def _rows_left_out(count: int, language: str) -> str:
    more = count - MAX_ROWS
    return note(t("data.more_not_shown", language, count=more)) if more > 0 else ""


def minutes(seconds: float, language: str) -> str:
    """Write a length; what is shorter than a minute in seconds."""
    if seconds < 60:
        return t("data.count_seconds", language, count=f"{seconds:.1f}")
    return t("data.count_minutes", language, count=f"{seconds / 60:.1f}")


# --- the sources ---


def sources(project: Project, language: str) -> str:
    """List the sources of the dataset, how each file was interpreted, and a button that removes it."""
    rows = _uploaded(project, language)
    for path in uploads.list_uploads(project, uploads.LISTS):
        rows.append(_source(path.name, t("data.list_of_clips", language), language, uploads.LISTS))
    own = {uploads.project_input(kind) for kind in (uploads.UPLOADS, uploads.LISTS)}
    for name in uploads.read_inputs(project):
        if name == uploads.project_input(uploads.TAKES):
            count = len(voice_recordings.takes(project.recordings))
            rows.append(_source(name, t("data.recorded_sentences", language, count=count), language))
        elif name not in own:
            key = "data.downloaded_by_step_1" if uploads.is_remote(name) else "data.read_from_disk"
            rows.append(_source(name, t(key, language), language))
    if not rows:
        return ""
    return _table(("data.source", "data.understood_as", "common.actions"), rows[:MAX_ROWS], language, "stack") + (
        _rows_left_out(len(rows), language)
    )


def _source(name: str, meaning: str, language: str, kind: str = "", classes: str = "") -> Sequence[str]:
    label = f"{t('data.remove', language)}: {name}"
    remove = views.button("remove", "✕", "quiet", aria_label=label, name=name, kind=kind)
    return name, cell(meaning, classes=classes), views.html_cell(remove)


def _uploaded(project: Project, language: str) -> list[Sequence[str]]:
    files = uploads.list_uploads(project)
    known, text = meanings(uploads.pair_files(files), language), (t("data.text_file", language), "")
    return [
        _source(path.name, meaning, language, uploads.UPLOADS, classes)
        for path, (meaning, classes) in (known | {path: text for path in files if path not in known}).items()
    ]


def meanings(found: InputPreview, language: str) -> dict[Path, tuple[str, str]]:
    """Return how each file is interpreted, with the class of its cell."""
    known = {}
    for pair in found.pairs[:MAX_ROWS]:
        text = t("data.its_text_file" if pair.has_transcript else "data.speech_recognition", language)
        if pair.subtitles:
            lines = uploads.count_lines(pair.subtitles[0])
            text = t("data.subtitle_lines", language, count=lines, name=pair.subtitles[0].name)
        known[pair.media] = f"{minutes(uploads.length_of(pair.media), language)} · {text}", ""
        for file in pair.subtitles:
            known[file] = t("data.subtitles_of", language, name=pair.media.name), ""
    return known | dict.fromkeys(found.unmatched[:MAX_ROWS], (t("data.no_matching_media", language), "warn"))


def understood(names: Sequence[str], language: str) -> str:
    """Say what inputs were understood as, such as "Added: 3 recordings, 1 link."; nothing without any."""
    kinds = Counter(uploads.kind_of(name) for name in names)
    parts = (t(f"data.added_{kind}", language, count=count) for kind, count in sorted(kinds.items()))
    return t("data.added", language, what=", ".join(parts)) if kinds else ""


def preview(found: InputPreview, language: str) -> str:
    """Show what an input holds and which subtitles go with which media."""
    if found.is_remote:
        return note(t("data.downloaded_by_step_1", language))
    if found.has_tables:
        return note(t("data.dataset_with_audio", language))
    shown = note(t("data.dataset_clip_count", language, count=found.clips)) if found.clips else ""
    rows = [(path.name, cell(text, classes=kind)) for path, (text, kind) in meanings(found, language).items()]
    shown += _table(("data.source", "data.understood_as"), rows, language, "stack") if rows else ""
    shown += _rows_left_out(len(found.pairs), language)
    problems, more = [*found.problems[:MAX_PROBLEMS]], len(found.problems) - MAX_PROBLEMS
    if more > 0:
        problems.append(t("data.more_not_shown", language, count=more))
    return shown + message_box("warning", *problems)


def recording_progress(covered: PhonemeCoverage, language: str) -> str:
    """Show how many sentences were recorded, and which phonemes are still missing."""
    values = {"count": covered.takes, "time": minutes(covered.seconds, language)}
    label = t("data.takes_progress", language, **values, sounds=covered.sounds, total=covered.total)
    bar = views.progress(label, covered.sounds, covered.total)
    if not covered.takes:
        return bar
    if covered.missing:
        return bar + note(t("data.phones_still_missing", language, sounds=" ".join(covered.missing)))
    return bar + note(t("data.all_phones_recorded", language))


# --- a preparation ---


def run_facts(run: Run, state: State, language: str) -> str:
    events = views.newest_events(run)
    facts = list(map(from_json, reversed(events)))
    warnings = dict.fromkeys(_warning(fact, language) for fact in facts if _is_warning(fact))
    is_empty = any(isinstance(fact, Prepared) and not fact.clips for fact in facts)
    return (
        views.run_head(run, state, language, "warn" if is_empty else "")
        + message_box("warning", t("data.no_clips_made", language) if is_empty else "", aloud=False)
        + ("" if state.status == "finished" else progress.phases(run, state, language))
        + message_box("warning", *list(warnings)[:MAX_PROBLEMS], aloud=False)
    )


def _is_warning(fact: Fact) -> bool:
    return fact.level == "warning" or (isinstance(fact, Unrecognised) and fact.name == "warning")  # of version 1.1


def _warning(fact: Fact, language: str) -> str:
    if isinstance(fact, Bad):
        reason = fact.reason
        text = describe_error(reason, language) if isinstance(reason, AmharicTtsError) else reason
        text = wording.describe(text, language) if isinstance(text, Fact) else text
        return f"{fact.path.name}: {text}"
    if isinstance(fact, RecordingWarning):
        return f"{fact.path.name}: {wording.describe(fact.about, language)}"
    return wording.describe(fact, language)


def file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2] or path


# --- the dataset ---


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


def ledger(found: Account, language: str) -> str:
    """Account for every second: a bar, a sum for each outcome, and a line for each recording."""
    excluded, total = t("data.not_in_use", language), found.total
    outcomes = [
        ("kept", t("common.in_use", language), total.kept),
        ("between", t("data.pauses", language), total.between),
        *(("aside", f"{excluded}: {reason_text(part.reason, language)}", part.seconds) for part in total.excluded),
    ]
    bar = [(kind, f"{seconds:.3f}") for kind, _, seconds in outcomes if seconds > 0]
    rows = [
        (name, minutes(seconds, language), f"{100 * seconds / (total.seconds or 1):.1f} %")
        for _, name, seconds in outcomes
    ]
    name = cell(t("data.all_recordings", language), classes="mark")
    rows.append((name, minutes(total.seconds, language), "100 %"))
    keys = (("kept", "common.in_use"), ("between", "data.pauses"), ("aside", "data.not_in_use"))
    key = [(kind, t(name, language)) for kind, name in keys]
    unused = [_warning(bad, language) for bad in found.failed]
    return (
        html("dataset.html", "share", bar, key)
        + _table(("data.outcome", "common.length", "data.share"), rows, language)
        + details(t("data.by_recording", language), _recordings(found.recordings, language))
        + message_box("error", *unused[:MAX_PROBLEMS], aloud=False)
    )


def _recordings(found: Sequence[Ledger], language: str) -> str:
    rows = []
    for entry in found[:MAX_ROWS]:
        why = (f"{reason_text(part.reason, language)} {minutes(part.seconds, language)}" for part in entry.excluded)
        excluded = sum(part.seconds for part in entry.excluded)
        times = [minutes(time, language) for time in (entry.seconds, entry.kept, excluded)]
        rows.append([file_name(entry.source), *times, ", ".join(why)])
    titles = ("data.recording", "common.length", "common.in_use", "data.not_in_use", "data.why")
    return _table(titles, rows, language, "stack") + _rows_left_out(len(found), language)


def statistics(found: Statistics, language: str) -> str:
    """Show the statistics that are not charts."""

    def in_seconds(value: float, form: str) -> str:
        return t("data.count_seconds", language, count=format(value, form))

    speakers = [f"{name} {minutes(seconds, language)}" for name, seconds in found.speakers.items()]
    rows = {"data.speakers": ", ".join(speakers[:MAX_SPEAKERS])}
    spreads = {
        "data.clip_length": found.seconds,
        "data.speaking_rate": found.pace,
        "data.snr": found.snr,
        "data.loudness": found.loudness,
    }
    for name, values in spreads.items():
        if values:
            low, middle, high = (f"{percentile(values, share):.1f}" for share in (5, 50, 95))
            rows[name] = t("data.spread", language, low=low, middle=middle, high=high)
    if found.seconds:
        rows["data.length_percentile"] = in_seconds(percentile(found.seconds, 99.5), ".2f")
        rows["data.suggested_max_length"] = in_seconds(suggested_max_length(found.seconds), "g")
    rows["data.repeated_texts"] = str(found.repeated)
    counts = ""
    if total := len(found.phonemes):
        rows["data.phones_present"] = t("common.used_of_total", language, used=total - len(found.missing), total=total)
        rows["data.phones_missing"] = " ".join(found.missing) or t("common.none", language)
        counts = details(t("data.phone_counts", language), _phoneme_list(found.phonemes))
    cells = [(t(name, language), text) for name, text in rows.items()]
    return _table(("common.what", "data.how_much"), cells, language) + counts


def _phoneme_list(counts: Mapping[str, int]) -> str:
    """List phonemes with how often each occurs, the rarest first."""
    return html("dataset.html", "sounds", sorted(counts.items(), key=lambda item: item[1]))
