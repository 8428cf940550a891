"""Renders recordings, a preparation and a dataset as HTML; independent of gradio."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from utils.core import wording
from utils.core.errors import AmharicTtsError
from utils.core.facts import Fact, Unrecognised, from_json
from utils.core.wording import describe, join_list
from utils.dataset import voice_recordings
from utils.dataset.facts import Bad, Ledger, Prepared, RecordingWarning
from utils.dataset.statistics import Account, Statistics, percentile, suggested_max_length
from utils.dataset.store import Store, Total, View
from utils.dataset.voice_recordings import PhonemeCoverage
from utils.studio import uploads
from utils.studio.paths import Project
from utils.studio.run_state import State
from utils.studio.runs import ACTIVE, Run
from utils.studio.uploads import InputPreview
from utils.ui import progress, views
from utils.ui.html import html
from utils.ui.i18n import describe_error, t
from utils.ui.tabs.data.clip_render import reason_text
from utils.ui.views import cell, details, message_box, note, table

MAX_ROWS = 100
MAX_PROBLEMS = 20
MAX_SPEAKERS = 12
MAX_NEW = 8  # clips shown while more are made


def _rows_left_out(count: int) -> str:
    more = count - MAX_ROWS
    return note(t("data.more_not_shown", count=more)) if more > 0 else ""


# --- the sources ---


def sources(project: Project) -> str:
    """List the sources of the dataset, how each file was interpreted, and a button that removes it."""
    rows = _uploaded(project)
    for path in uploads.list_uploads(project, uploads.LISTS):
        rows.append(_source(path.name, "data.list_of_clips", uploads.LISTS))
    own = {uploads.project_input(kind) for kind in (uploads.UPLOADS, uploads.LISTS)}
    for name in uploads.read_inputs(project):
        if name == uploads.project_input(uploads.TAKES):
            count = len(voice_recordings.takes(project.recordings))
            rows.append(_source(name, t("data.recorded_sentences", count=count)))
        elif name not in own:
            key = "data.downloaded_by_step_1" if uploads.is_remote(name) else "data.read_from_disk"
            rows.append(_source(name, key))
    if not rows:
        return ""
    titles = ("data.source", "data.understood_as", "common.actions")
    return table(titles, rows[:MAX_ROWS], classes="stack") + _rows_left_out(len(rows))


def _source(name: str, meaning: str, kind: str = "", classes: str = "") -> Sequence[str]:
    label = f"{t('data.remove')}: {name}"
    remove = views.button("remove", "✕", "quiet", aria_label=label, name=name, kind=kind)
    return name, cell(meaning, classes=classes), views.html_cell(remove)


def _uploaded(project: Project) -> list[Sequence[str]]:
    files = uploads.list_uploads(project)
    known, text = meanings(uploads.pair_files(files)), ("data.text_file", "")
    return [
        _source(path.name, meaning, uploads.UPLOADS, classes)
        for path, (meaning, classes) in (known | {path: text for path in files if path not in known}).items()
    ]


def meanings(found: InputPreview) -> dict[Path, tuple[str, str]]:
    """Return how each file is interpreted, with the class of its cell."""
    known = {}
    for pair in found.pairs[:MAX_ROWS]:
        text = t("data.its_text_file" if pair.has_transcript else "data.speech_recognition")
        if pair.subtitles:
            lines = uploads.count_lines(pair.subtitles[0])
            text = t("data.subtitle_lines", count=lines, name=pair.subtitles[0].name)
        known[pair.media] = f"{wording.time(uploads.length_of(pair.media))} · {text}", ""
        for file in pair.subtitles:
            known[file] = t("data.subtitles_of", name=pair.media.name), ""
    return known | dict.fromkeys(found.unmatched[:MAX_ROWS], ("data.no_matching_media", "warn"))


def understood(names: Sequence[str]) -> str:
    """Say what inputs were understood as, such as "Added: 3 recordings, 1 link."; nothing without any."""
    kinds = Counter(uploads.kind_of(name) for name in names)
    parts = (t(f"data.added_{kind}", count=count) for kind, count in sorted(kinds.items()))
    return t("data.added", what=join_list(parts)) if kinds else ""


def preview(found: InputPreview) -> str:
    """Show what an input holds and which subtitles go with which media."""
    if found.is_remote:
        return note("data.downloaded_by_step_1")
    if found.has_tables:
        return note("data.dataset_with_audio")
    shown = note(t("data.dataset_clip_count", count=found.clips)) if found.clips else ""
    rows = [(path.name, cell(text, classes=kind)) for path, (text, kind) in meanings(found).items()]
    shown += table(("data.source", "data.understood_as"), rows, classes="stack") if rows else ""
    shown += _rows_left_out(len(found.pairs))
    problems, more = [*found.problems[:MAX_PROBLEMS]], len(found.problems) - MAX_PROBLEMS
    if more > 0:
        problems.append(t("data.more_not_shown", count=more))
    return shown + message_box("warning", *problems)


def recording_progress(covered: PhonemeCoverage) -> str:
    """Show how many sentences were recorded, and which phonemes are still missing."""
    label = t(
        "data.takes_progress",
        count=covered.takes,
        time=wording.time(covered.seconds),
        sounds=covered.sounds,
        total=covered.total,
    )
    bar = views.progress(label, covered.sounds, covered.total)
    if not covered.takes:
        return bar
    if covered.missing:
        return bar + note(t("data.phones_still_missing", sounds=" ".join(covered.missing)))
    return bar + note("data.all_phones_recorded")


# --- a preparation ---


def run_facts(run: Run, state: State) -> str:
    facts = list(map(from_json, reversed(views.newest_events(run))))
    warnings = dict.fromkeys(_warning(fact) for fact in facts if _is_warning(fact))
    is_empty = any(isinstance(fact, Prepared) and not fact.clips for fact in facts)
    said = [*warnings][:MAX_PROBLEMS]
    if is_empty:
        said.insert(0, "data.no_clips_made")
    return (
        progress.facts(run, state, "warn" if is_empty else "")
        + message_box("warning", *said, aloud=False)
        + (_new_clips(run.project.dataset, state.created) if state.status in ACTIVE else "")
    )


def _new_clips(folder: Path, since: float) -> str:
    """List the clips that were stored since a time, the newest first; those of a recording come all at once."""
    store = Store(folder)
    listed = store.page(View(order="newest"), 1).clips if store.exists else []
    files = [(clip.text, folder / clip.audio) for clip in listed if clip.audio]
    new = [(text, file) for text, file in files if file.is_file() and file.stat().st_mtime >= since]
    sounds = [(text, [views.hear(file, f"{t('data.play')}: {text}")]) for text, file in new[:MAX_NEW]]
    return html("run.html", "samples", [("data.new_clips", "", True, sounds)]) if sounds else ""


def _is_warning(fact: Fact) -> bool:
    return fact.level == "warning" or (isinstance(fact, Unrecognised) and fact.name == "warning")  # of version 1.1


def _warning(fact: Fact) -> str:
    if isinstance(fact, Bad):
        reason = fact.reason
        text = describe_error(reason) if isinstance(reason, AmharicTtsError) else reason
        text = describe(text) if isinstance(text, Fact) else text
        return f"{fact.path.name}: {text}"
    if isinstance(fact, RecordingWarning):
        return f"{fact.path.name}: {describe(fact.about)}"
    return describe(fact)


def file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2] or path


# --- the dataset ---


def summary(totals: Mapping[str, Total], recordings: int) -> str:
    """Show the size of a dataset in one line that wraps."""
    cards = {
        "data.recordings": str(recordings),
        "data.clips_in_use": f"{totals['kept'].clips} · {wording.time(totals['kept'].seconds)}",
        "data.not_in_use": f"{totals['excluded'].clips} · {wording.time(totals['excluded'].seconds)}",
        "common.training": str(totals["train"].clips),
        "common.evaluation": str(totals["eval"].clips),
    }
    return views.cards(cards)


def ledger(found: Account) -> str:
    """Account for every second: a bar, a sum for each outcome, and a line for each recording."""
    unused = [_warning(bad) for bad in found.failed]
    return (
        _usage(found.total)
        + details("data.by_recording", _recordings(found.recordings))
        + message_box("error", *unused[:MAX_PROBLEMS], aloud=False)
    )


def _usage(total: Ledger) -> str:
    """Show what became of all seconds."""
    excluded = t("data.not_in_use")
    outcomes = [
        ("good", "common.in_use", total.kept),
        ("series-5", "data.pauses", total.between),
        *(("doubt", f"{excluded}: {reason_text(part.reason)}", part.seconds) for part in total.excluded),
    ]
    bar = [(kind, f"{seconds:.3f}") for kind, _, seconds in outcomes if seconds > 0]
    key = [("good", "common.in_use"), ("series-5", "data.pauses"), ("doubt", excluded)]
    rows = [
        (name, wording.time(seconds), f"{100 * seconds / (total.seconds or 1):.1f} %") for _, name, seconds in outcomes
    ]
    rows.append((cell("data.all_recordings", classes="mark"), wording.time(total.seconds), "100 %"))
    return html("views.html", "share", bar, key) + table(("data.outcome", "common.length", "data.share"), rows)


def _recordings(found: Sequence[Ledger]) -> str:
    rows = []
    for entry in found[:MAX_ROWS]:
        why = (f"{reason_text(part.reason)} {wording.time(part.seconds)}" for part in entry.excluded)
        excluded = sum(part.seconds for part in entry.excluded)
        times = [wording.time(time) for time in (entry.seconds, entry.kept, excluded)]
        rows.append([file_name(entry.source), *times, join_list(why)])
    titles = ("data.recording", "common.length", "common.in_use", "data.not_in_use", "data.why")
    return table(titles, rows, classes="stack") + _rows_left_out(len(found))


def statistics(found: Statistics) -> str:
    """Show the statistics that are not charts."""
    speakers = [f"{name} {wording.time(seconds)}" for name, seconds in found.speakers.items()]
    rows = {"data.speakers": join_list(speakers[:MAX_SPEAKERS])}
    spreads = {
        "data.clip_length": found.seconds,
        "data.speaking_rate": found.pace,
        "data.snr": found.snr,
        "data.loudness": found.loudness,
    }
    rows |= {name: _spread(values) for name, values in spreads.items() if values}
    if found.seconds:
        rows["data.length_percentile"] = _in_seconds(percentile(found.seconds, 99.5), ".2f")
        rows["data.suggested_max_length"] = _in_seconds(suggested_max_length(found.seconds), "g")
    rows["data.repeated_texts"] = str(found.repeated)
    if total := len(found.phonemes):
        rows["data.phones_present"] = t("common.used_of_total", used=total - len(found.missing), total=total)
        rows["data.phones_missing"] = " ".join(found.missing) or "common.none"
    return table(("common.what", "data.how_much"), rows.items()) + _phoneme_counts(found.phonemes)


def _phoneme_counts(counts: Mapping[str, int]) -> str:
    """List phonemes with how often each occurs, the rarest first; nothing without any."""
    listed = views.joined(*(f"{sound} {count}" for sound, count in sorted(counts.items(), key=lambda item: item[1])))
    return details("data.phone_counts", views.element("p", text=listed)) if counts else ""


def _in_seconds(value: float, form: str) -> str:
    return t("time.seconds", count=format(value, form))


def _spread(values: Sequence[float]) -> str:
    low, middle, high = (f"{percentile(values, share):.1f}" for share in (5, 50, 95))
    return t("data.spread", low=low, middle=middle, high=high)
