"""The clip table and the chosen clip, as HTML; knows nothing of gradio."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from utils.core.errors import AmharicTtsError
from utils.dataset.clip import APPROVED, MAX_SECONDS, Clip
from utils.dataset.queries import ClipPage
from utils.media import audio
from utils.media.audio import Samples
from utils.ui.i18n import describe_error, t, translate
from utils.ui.views import audio_player, cell, file_url, note, table

WAVE_RATE = 8000  # samples a second; the outline needs no more
WAVE_WIDTH, WAVE_HEIGHT = 600, 120
MAX_TEXT = 160  # characters in the table
TITLES = ("data.choose", "data.play", "common.text", "data.seconds", "data.status")


ACTIONS = tuple(
    f"data.{action}" for action in ("save_text", "approve", "exclude", "restore", "trim", "split", "merge_next")
)  # labels of the buttons that act on the chosen clip


def available_actions(clip: Clip, following: Clip | None) -> dict[str, bool]:
    """Return whether each action can be taken on a clip, by label; ``following`` is the next one of the recording."""
    has_audio = bool(clip.audio)
    is_complete = has_audio and bool(clip.text.strip())
    is_excluded, is_approved = clip.status == "excluded", clip.status == "kept" and clip.reason == APPROVED
    can_merge = following is not None and following.span.end - clip.span.start <= MAX_SECONDS
    available = (
        True,
        is_complete and not is_approved,
        not is_excluded,
        is_complete and (is_excluded or is_approved),
        has_audio,
        has_audio,
        has_audio and can_merge,
    )
    return dict(zip(ACTIONS, available, strict=True))


def rows(page: ClipPage, chosen: str, folder: Path, language: str) -> str:
    if not page.clips:
        return note(t("data.no_matching_clips", language))
    titles = [t(title, language) for title in TITLES]
    html = table(titles, [_row(clip, folder, language) for clip in page.clips], classes="stack")
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
        f'<td><button type="button" class="text" data-clip="{name}">{escape(text)}</button></td>',
        cell(f"{clip.span.seconds:.1f}", classes="number"),
        cell(_status(clip, language), classes="mark warn" if clip.status == "excluded" else "mark"),
    )


def _scores(clip: Clip, language: str) -> str:
    """Return what was measured of a clip."""
    scores = {
        "data.snr_db": _number(clip.scores.snr_db, 1),
        "data.letters_per_second": _number(clip.scores.chars_per_second, 1),
        "data.confidence": _number(clip.scores.confidence, 2),
    }
    return " · ".join(f"{t(key, language)} {value}" for key, value in scores.items() if value)


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _status(clip: Clip, language: str) -> str:
    if clip.status == "excluded":
        return f"✗ {translate(clip.reason, language)}"
    is_approved = clip.reason == APPROVED
    return f"✓ {t('data.clip_approved', language)}" if is_approved else f"· {t('data.clip_in_use', language)}"


def details(clip: Clip, folder: Path, language: str) -> str:
    """Show the chosen clip: what is known of it, its player and its waveform."""
    split = translate(clip.split, language) if clip.split else t("data.no_split", language)
    times = f"{_clock(clip.span.start)}-{_clock(clip.span.end)}"
    facts = f"{_status(clip, language)} · {Path(clip.source).name} · {times} · {clip.speaker} · {split}"
    head = f"<h3>{escape(clip.text or t('data.no_text', language))}</h3>{note(facts)}{note(_scores(clip, language))}"
    if not clip.audio:
        return head + note(t("data.clip_without_audio", language))
    attributes = f'preload="metadata" data-seconds="{clip.span.seconds:.3f}"'
    player = audio_player(folder / clip.audio, t("data.clip_audio", language), attributes)
    try:
        wave = _waveform(audio.load(folder / clip.audio, WAVE_RATE), t("data.clip_waveform", language))
    except AmharicTtsError as error:
        return head + note(describe_error(error, language))
    return head + wave + player


def _clock(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}:{rest:05.2f}"


def _waveform(samples: Samples, label: str) -> str:
    """Draw the outline of a clip, with the marks that the sliders move."""
    return (
        f'<div class="wave"><svg viewBox="0 0 {WAVE_WIDTH} {WAVE_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}"><path d="{outline(samples)}"/></svg>'
        '<i class="before"></i><i class="after"></i><i class="cut"></i><i class="now"></i></div>'
    )


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
