"""What the tab shows of recordings, of a preparation and of a dataset, as HTML; knows nothing of gradio."""

from collections.abc import Mapping, Sequence
from html import escape

from utils.core.events import Event, as_number, format_event
from utils.dataset import lengths
from utils.dataset.ledger import Entry, Ledger
from utils.dataset.manifest import Contents
from utils.dataset.statistics import Statistics
from utils.dataset.voice_recordings import Progress
from utils.runs import ACTIVE, Run, State
from utils.ui import views
from utils.ui.i18n import say
from utils.ui.tabs.data import plots
from utils.ui.views import cell, note, table, told, unfolding
from utils.workspace.uploads import Look, Pair

MOST_ROWS = 100
MOST_FAULTS = 20
NO_CLIPS = "There are no clips yet. Add recordings above and press Step 1."

CSS = (
    plots.CSS
    + """
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
)


def looked(found: Look, language: str) -> str:
    """Show what a place holds and which words go with which sound."""
    if found.remote:
        return note(say("It is fetched when Step 1 starts.", language))
    if found.tables:
        return note(say("It is a dataset with the sound inside; its clips are counted when Step 1 reads it.", language))
    shown = ""
    if found.clips:
        shown += note(say("It is a dataset with {count} clips.", language, count=found.clips))
    if found.pairs or found.alone:
        shown += pairs(found, language)
    more = say("{count} more are not shown.", language, count=len(found.faults) - MOST_FAULTS)
    rest = [more] if len(found.faults) > MOST_FAULTS else []
    return shown + told("warnings", *found.faults[:MOST_FAULTS], *rest)


def pairs(found: Look, language: str) -> str:
    """Show which subtitle goes with which sound, and what has none."""
    rows = [
        (cell(pair.media.name), cell(_subtitles(pair)), cell(say(words_of(pair), language)))
        for pair in found.pairs[:MOST_ROWS]
    ]
    rows += [
        (
            cell("–"),
            cell(path.name),
            cell(say("No recording has this name; name both alike.", language), classes="warn"),
        )
        for path in found.alone[:MOST_ROWS]
    ]
    titles = [say(title, language) for title in ("Sound or video", "Subtitles", "Where its words come from")]
    return table(titles, rows, classes="stack") + _rest(len(found.pairs), language)


def _rest(count: int, language: str) -> str:
    """Say how many rows a table leaves out."""
    more = count - MOST_ROWS
    return note(say("{count} more are not shown.", language, count=more)) if more > 0 else ""


def words_of(pair: Pair) -> str:
    """Say where the words of a recording come from."""
    if pair.subtitles:
        return "its subtitles"
    return "its text file" if pair.text else "speech recognition"


def _subtitles(pair: Pair) -> str:
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
        + told("warnings", *list(sentences)[:MOST_FAULTS], aloud=False)
    )


def how_far(events: Sequence[Event], *, at_work: bool, language: str) -> str:
    """Show the bar with the share that is done and the time that is left."""
    latest = next((event for event in reversed(events) if event["kind"] in {"progress", "fetched"}), None)
    if latest is None:
        return note(say("Looking for recordings …", language)) if at_work else ""
    percent = as_number(latest.get("percent"))
    if percent is None:
        return note(format_event(latest))
    if latest["kind"] == "fetched":
        words = say("Fetching {name}: {percent} %", language, name=latest.get("name"), percent=round(percent))
    else:
        words = say("{step} of {total} recordings", language, step=latest.get("step"), total=latest.get("total"))
        words += f" · {percent:.0f} %"
        left = views.time_left(latest.get("seconds_left"), language) if at_work else ""
        words += f" · {left}" if left else ""
    return views.progress(words, percent, 100)


def complaint(event: Event) -> str:
    """Say what a file was complained of for."""
    name = str(event.get("path") or "").replace("\\", "/").rpartition("/")[2]
    sentence = str(event.get("reason") or event.get("message") or "")
    return sentence if not name or name in sentence else f"{name}: {sentence}"


def summary(contents: Contents, language: str) -> str:
    """Show the size of a dataset in one line that wraps."""
    kept = contents.kept
    aside = [clip for clip in contents.clips.values() if clip.status == "aside"]
    cards = {
        "Recordings": str(len(contents.recordings)),
        "Clips in use": f"{len(kept)} · {minutes(sum(clip.span.seconds for clip in kept), language)}",
        "Not in use": f"{len(aside)} · {minutes(sum(clip.span.seconds for clip in aside), language)}",
        "Training": str(sum(clip.split == "train" for clip in kept)),
        "Evaluation": str(sum(clip.split == "eval" for clip in kept)),
    }
    return views.cards(cards, language)


def ledger(found: Ledger, language: str) -> str:
    """Account for every second: a bar, a sum for each fate, and a line for each recording."""
    total = found.seconds
    fates: dict[str, tuple[str, float]] = {
        "In use": ("kept", found.kept),
        "Pauses between clips": ("between", found.between),
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
    rows.append((cell(say("All recordings", language), classes="mark"), cell(minutes(total, language)), cell("100 %")))
    titles = [say(title, language) for title in ("What became of it", "Length", "Share")]
    keys = (("kept", "In use"), ("between", "Pauses between clips"), ("aside", "Not in use"))
    key = "".join(f'<span class="{kind}">{escape(say(name, language))}</span>' for kind, name in keys)
    unused = [f"{_name(entry)}: {entry.fault}" for entry in found.faults]
    return (
        f'<div class="share" aria-hidden="true">{bar}</div><div class="key">{key}</div>{table(titles, rows)}'
        + unfolding(say("Each recording", language), _entries(found, language))
        + told("faults", *unused[:MOST_FAULTS], aloud=False)
    )


def _fate(name: str, kind: str, language: str) -> str:
    return f"{say('Not in use', language)}: {say(name, language)}" if kind == "aside" else say(name, language)


def _entries(found: Ledger, language: str) -> str:
    entries = [entry for entry in found.entries if not entry.fault]
    rows = [
        (
            cell(_name(entry)),
            cell(minutes(entry.seconds, language)),
            cell(minutes(entry.kept, language)),
            cell(minutes(sum(entry.aside.values()), language)),
            cell(
                ", ".join(f"{say(why, language)} {minutes(seconds, language)}" for why, seconds in entry.aside.items())
            ),
        )
        for entry in entries[:MOST_ROWS]
    ]
    titles = [say(title, language) for title in ("Recording", "Length", "In use", "Not in use", "Why")]
    return table(titles, rows, classes="stack") + _rest(len(entries), language)


def counted(found: Statistics, language: str) -> str:
    """Show the statistics with their pictures."""
    drawn = [
        plots.histogram(say("Length of the clips", language), found.seconds, say("s", language), language),
        plots.histogram(say("Letters a second", language), found.pace, "", language),
        plots.histogram(say("Signal-to-noise ratio", language), found.snr, "dB", language),
        plots.sounds(say("Sounds", language), found.phonemes, language),
    ]
    return plots.pictures(drawn) + _facts(found, language) + _sounds(found, language)


def _facts(found: Statistics, language: str) -> str:
    rows = [("Speakers", ", ".join(f"{name} {minutes(seconds, language)}" for name, seconds in speakers(found)))]
    if found.seconds:
        rows += [
            (
                "99.5 % of the clips are shorter than",
                _seconds(lengths.percentile(found.seconds, 99.5), ".2f", language),
            ),
            ("Suggested longest clip for training", _seconds(lengths.suggested(found.seconds), "g", language)),
        ]
    if found.phonemes:
        there = len(found.phonemes) - len(found.missing)
        rows.append(("Sounds that occur", say("{used} of {total}", language, used=there, total=len(found.phonemes))))
        rows.append(("Sounds that are missing", " ".join(found.missing) or say("none", language)))
    titles = [say(title, language) for title in ("What", "How much")]
    return table(titles, [(cell(say(name, language)), cell(text)) for name, text in rows])


def speakers(found: Statistics) -> Sequence[tuple[str, float]]:
    """Return the speakers who are heard most."""
    return list(found.speakers.items())[:12]


def _sounds(found: Statistics, language: str) -> str:
    if not found.phonemes:
        return ""
    return unfolding(say("Each sound, the rarest first", language), plots.sound_list(found.phonemes))


def reading(found: Progress, language: str) -> str:
    """Show how far somebody has come with reading sentences."""
    words = say(
        "{takes} sentences, {time}; {sounds} of {total} sounds",
        language,
        takes=found.takes,
        time=minutes(found.seconds, language),
        sounds=found.sounds,
        total=found.total,
    )
    missing = ""
    if found.takes and found.missing:
        missing = note(say("Sounds that are still missing: {sounds}", language, sounds=" ".join(found.missing)))
    elif found.takes:
        missing = note(say("All sounds have been read; more sentences show them in more surroundings.", language))
    return views.progress(words, found.sounds, found.total) + missing


def minutes(seconds: float, language: str) -> str:
    """Write a length; what is shorter than a minute in seconds."""
    return (
        _seconds(seconds, ".1f", language)
        if seconds < 60
        else say("{count} min", language, count=f"{seconds / 60:.1f}")
    )


def _seconds(seconds: float, form: str, language: str) -> str:
    return say("{count} s", language, count=format(seconds, form))


def merged(plan: Mapping[str, int], language: str) -> list[str]:
    """Say what a merge does, or would do, in sentences."""
    sentences = {
        "recordings": "Recordings that come in: {count}.",
        "clips": "Clips that come in: {count}.",
        "known": "Recordings that are there already and stay as they are: {count}.",
        "duplicates": "Clips that are there already and are set aside as duplicates: {count}.",
        "missing": "Clips without their sound file, which are left out: {count}.",
    }
    always = {"recordings", "clips"}
    return [say(sentences[name], language, count=count) for name, count in plan.items() if count or name in always]


def _name(entry: Entry) -> str:
    return entry.source.replace("\\", "/").rpartition("/")[2] or entry.source
