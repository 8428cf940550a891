"""One HTML page about a dataset, with all that it plays inside: a view of ``utils.dataset.report``."""

import base64
import io
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import soundfile

from utils.core import wording
from utils.core.errors import AmharicTtsError
from utils.core.wording import LANGUAGE, describe, speaking
from utils.dataset.clip import Clip
from utils.dataset.report import MEASURED, WRONG_SHOWN, DatasetReport, SpeakerReport
from utils.dataset.statistics import FEW, DatasetLengths
from utils.media import audio
from utils.recognition.signal_checks import HUM_BELOW_VOICE, NOISE_BELOW_SPEECH, REVERBERANT_SECONDS, TELEPHONE_HZ
from utils.ui import views
from utils.ui.html import html, styles
from utils.ui.i18n import t
from utils.ui.tabs.data import render
from utils.ui.tabs.data.clip_render import reason_text
from utils.ui.views import cell

RATE = 16_000  # of the players' sound: a text is checked by it, not a voice
SMALLEST = 0.9  # compression of libsndfile, from 0 to 1


def page(report: DatasetReport, folder: Path, name: str, language: str = "en") -> str:
    """Return the report of a dataset in its folder as one HTML file."""
    with speaking(language):
        return _page(report, folder, name)


def _page(report: DatasetReport, folder: Path, name: str) -> str:
    counts = DatasetLengths(report.statistics.seconds).counts().get("seconds", {})
    return html(
        "report.html",
        "page",
        language=LANGUAGE.get(),
        css=styles("tokens", "shared", "report"),
        name=name,
        cards=_cards(report),
        advice=[describe(fact) for fact in report.advice],
        ledger=render.ledger(report.account),
        speakers=_speakers(report),
        measured=t("data.report_measured", clips=MEASURED),
        statistics=render.statistics(report.statistics),
        lengths=_bars(counts),
        phones=_bars(dict(sorted(report.statistics.phonemes.items(), key=lambda item: item[1])), FEW),
        few=t("data.report_phones_hint", few=FEW),
        sentences=report.sentences,
        texts=_texts(report, folder),
    )


def _texts(report: DatasetReport, folder: Path) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the clips whose text is wrong, by reason, and the doubtful ones."""
    shown = partial(_clip, folder=folder, report=report)
    texts = [
        (f"{reason_text(reason)} ({len(clips)})", [shown(clip) for clip in clips[:WRONG_SHOWN]])
        for reason, clips in report.wrong.items()
    ]
    if report.doubtful:
        texts.append((t("data.report_suspicious"), [*map(shown, report.doubtful)]))
    return texts


def _cards(report: DatasetReport) -> str:
    total, counted = report.account.total, report.statistics
    cards = {
        "data.clips_in_use": f"{len(counted.seconds)} · {wording.time(sum(counted.seconds))}",
        "data.not_in_use": wording.time(sum(part.seconds for part in total.excluded)),
        "data.recordings": f"{counted.recordings} · {wording.time(total.seconds)}",
        "data.speakers": str(len(report.speakers)),
        "data.duplicates": str(report.duplicates),
    }
    return views.cards(cards)


def _speakers(report: DatasetReport) -> str:
    titles = ("speaker", "clips", "speaking_rate", "snr", "loudness")
    measured = ("rate", "band", "hum", "decay", "noise")
    keys = [*(f"data.{key}" for key in titles), *(f"data.report_{key}" for key in measured)]
    return views.table(keys, [_speaker(speaker) for speaker in report.speakers])


def _speaker(speaker: SpeakerReport) -> list[str]:
    size = f"{speaker.clips} · {wording.time(speaker.seconds)}"
    medians = [_number(value) for value in (speaker.pace, speaker.snr, speaker.loudness)]
    cells = [cell(speaker.name, classes="mark"), size, *medians]
    if not (signal := speaker.signal):
        return [*cells, *["–"] * 5]
    limits = (
        (signal.band / 1000, signal.band < TELEPHONE_HZ),
        (signal.hum_db, signal.hum_db > HUM_BELOW_VOICE),
        (signal.decay, (signal.decay or 0.0) > REVERBERANT_SECONDS),
        (-signal.noise_db, signal.noise_db < NOISE_BELOW_SPEECH),
    )
    values = [cell(_number(value), classes="warn" if is_bad else "") for value, is_bad in limits]
    return [*cells, f"{speaker.rate / 1000:g}" if speaker.rate else "–", *values]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}" if abs(value) < 1 else f"{value:.1f}"


def _bars(counts: Mapping[str, int], few: int = 0) -> list[tuple[str, int, str, str]]:
    """Return the bars of a histogram: name, count, height and colour, another one for too few."""
    most = max(counts.values(), default=0) or 1
    return [
        (name, count, f"{80 * count / most:.1f}", "doubt" if count < few else "series-1")
        for name, count in counts.items()
    ]


def _clip(clip: Clip, folder: Path, report: DatasetReport) -> dict[str, Any]:
    scores = {"data.snr_db": clip.scores.snr_db, "data.text_match": clip.scores.text_match}
    place = f"{render.file_name(clip.source)}, {wording.clock(clip.span.start)}–{wording.clock(clip.span.end)}"
    known = (f"{t(name)} {value:z.1f}" for name, value in scores.items() if value is not None)
    return {
        "text": clip.text or "–",
        "language": report.language,
        "about": [*filter(None, (clip.note, clip.other_text, views.joined(place, *known)))],
        "sound": _sound(folder / clip.audio) if clip.audio else "",
    }


def _sound(path: Path) -> str:
    """Return a clip as a URL that holds it, about 4 kB a second; nothing if it cannot be read."""
    try:
        samples = audio.load(path, RATE)
    except AmharicTtsError:  # ``validate`` names it
        return ""
    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format="MP3", compression_level=SMALLEST)
    return f"data:audio/mpeg;base64,{base64.b64encode(file.getvalue()).decode()}"
