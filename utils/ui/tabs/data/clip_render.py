"""The clip table and the chosen clip, as HTML; knows nothing of gradio."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

import numpy as np

from utils.core.errors import AmharicTtsError
from utils.dataset.clip import APPROVED, Clip
from utils.dataset.lengths import LIMIT
from utils.dataset.queries import ClipPage
from utils.media import audio
from utils.media.audio import Samples
from utils.ui.i18n import describe_error, t, translate
from utils.ui.views import cell, note, table

WAVE_RATE = 8000  # samples a second; the outline needs no more
WAVE_WIDTH, WAVE_HEIGHT = 600, 120
MAX_TEXT = 160  # characters in the table
TITLES = (
    "data.choose",
    "data.play",
    "common.text",
    "data.seconds",
    "data.snr_db",
    "data.letters_per_second",
    "data.confidence",
    "data.status",
    "data.recording",
)

CSS = """
.wave { position: relative; margin: 6px 0; --start: 0; --end: 1; --split: -1; --at: -1; overflow: hidden;
  border: 1px solid var(--border-color-primary); border-radius: 4px; background: var(--block-background-fill); }
.wave svg { display: block; width: 100%; height: 110px; }
.wave path { fill: #047857; } .dark .wave path { fill: #34d399; }
.wave i { position: absolute; top: 0; bottom: 0; pointer-events: none; }
.wave .before { left: 0; width: calc(var(--start) * 100%); background: #64748b88; }
.wave .after { right: 0; width: calc((1 - var(--end)) * 100%); background: #64748b88; }
.wave .cut { left: calc(var(--split) * 100%); border-left: 2px dashed #b45309; }
.wave .now { left: calc(var(--at) * 100%); border-left: 2px solid #1d4ed8; }
.dark .wave .cut { border-color: #fbbf24; } .dark .wave .now { border-color: #93c5fd; }
#clips table.facts td { padding-block: 3px; vertical-align: middle; }
#clips tr.chosen { outline: 2px solid #047857; outline-offset: -2px; }
.dark #clips tr.chosen { outline-color: #34d399; }
#clips button { font: inherit; color: inherit; background: none; border: 0; cursor: pointer; text-align: start;
  padding: 4px; min-height: 28px; }
#clips button.play { min-width: 32px; text-align: center; border: 1px solid var(--border-color-primary);
  border-radius: 4px; }
#clips button.text { text-decoration: underline; text-decoration-color: var(--border-color-primary);
  text-underline-offset: 3px; overflow-wrap: anywhere; }
#clips :is(button, input):focus-visible { outline: 2px solid #1d4ed8; outline-offset: 1px; }
#clips input { width: 18px; height: 18px; accent-color: #047857; }
#clips td.number { text-align: end; font-variant-numeric: tabular-nums; white-space: nowrap; }
#clip-view audio { width: 100%; height: 40px; display: block; }
#clip-view h3 { margin: 0 0 4px; font-size: var(--text-md); overflow-wrap: anywhere; }
@media (max-width: 600px) {
  #clips table.facts.stack td:is(.number, :nth-child(1), :nth-child(2)) { text-align: start; display: inline-block; }
  #clips table.facts.stack td.number::before { content: attr(data-title) " "; color: var(--body-text-color-subdued); } }
"""

# Listens on the element itself, whose content is replaced.
SCRIPT = """
const player = new Audio();
let playing = null;
const quiet = () => { if (playing) { playing.textContent = '▶'; playing = null; } };
player.addEventListener('ended', quiet);
element.addEventListener('click', event => {
  const play = event.target.closest('[data-play]');
  const choose = event.target.closest('[data-clip]');
  const all = event.target.closest('[data-all]');
  if (play) {
    const same = play === playing;
    player.pause(); quiet();
    if (!same) { player.src = play.dataset.play; player.play().then(() => {}, quiet);
      playing = play; play.textContent = '■'; }
  } else if (choose) {
    trigger('select', {clip: choose.dataset.clip});
  } else if (all) {
    element.querySelectorAll('input[data-tick]').forEach(box => { box.checked = all.checked; });
  }
});
"""

# Time updates do not bubble, so they are caught on their way down.
WAVE_SCRIPT = """
element.addEventListener('timeupdate', event => {
  const wave = element.querySelector('.wave');
  const sound = event.target;
  if (wave && sound.duration) {
    wave.style.setProperty('--at', sound.currentTime / sound.duration);
  }
}, true);
element.addEventListener('click', event => {
  const wave = event.target.closest('.wave');
  const sound = element.querySelector('audio');
  if (wave && sound && sound.duration) {
    const box = wave.getBoundingClientRect();
    sound.currentTime = (event.clientX - box.left) / box.width * sound.duration;
  }
});
"""

TICKED = "() => [...document.querySelectorAll('#clips input[data-tick]:checked')].map(box => box.dataset.tick)"
MARKS = """(start, end, split) => {
  const wave = document.querySelector('#clip-view .wave');
  if (wave) {
    const seconds = Number(wave.parentElement.querySelector('[data-seconds]').dataset.seconds);
    wave.style.setProperty('--start', start / seconds);
    wave.style.setProperty('--end', end / seconds);
    wave.style.setProperty('--split', split > 0 && split < seconds ? split / seconds : -1);
  }
}"""
PLAY_PART = """(start, end) => {
  const sound = document.querySelector('#clip-view audio');
  if (!sound) return;
  const stop = () => {
    if (sound.currentTime >= end) { sound.pause(); sound.removeEventListener('timeupdate', stop); }
  };
  sound.currentTime = start;
  sound.addEventListener('timeupdate', stop);
  sound.play();
}"""


ACTIONS = (
    "data.save_text",
    "data.approve",
    "data.exclude",
    "data.restore",
    "data.trim",
    "data.split",
    "data.merge_next",
)  # labels of the buttons that act on the chosen clip


def disabled_actions(clip: Clip | None, following: Clip | None, *, busy: bool) -> dict[str, str]:
    """Return why each action on the chosen clip is disabled, by label; empty when it is enabled.

    Args:
        clip: The clip; None when none is chosen.
        following: The next clip of the recording.
        busy: Whether a run is using the clips.
    """
    if clip is None or busy:
        return dict.fromkeys(ACTIONS, "data.clips_in_use_by_run" if busy else "data.choose_clip_first")
    no_audio = "" if clip.audio else "data.clip_without_audio"
    incomplete = no_audio or ("" if clip.text.strip() else "data.clip_without_text")
    is_excluded, is_approved = clip.status == "excluded", clip.status == "kept" and clip.reason == APPROVED
    if following is None:
        no_merge = "data.no_next_clip"
    else:
        no_merge = "" if following.span.end - clip.span.start <= LIMIT else "data.merge_too_long"
    reasons = (
        "",
        incomplete or ("data.already_approved" if is_approved else ""),
        "data.already_excluded" if is_excluded else "",
        incomplete if is_excluded or is_approved else "data.already_in_use",
        no_audio,
        no_audio,
        no_audio or no_merge,
    )
    return dict(zip(ACTIONS, reasons, strict=True))


def rows(page: ClipPage, chosen: str, folder: Path, language: str) -> str:
    """Show one page of clips."""
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
    player = f'<button type="button" class="play" data-play="{audio_url(folder, clip)}" aria-label="{play}">▶</button>'
    scores = clip.scores
    return (
        f'<td><input type="checkbox" data-tick="{name}" aria-label="{tick}"></td>',
        f"<td>{player if clip.audio else '–'}</td>",
        f'<td><button type="button" class="text" data-clip="{name}">{escape(text)}</button></td>',
        _number(clip.span.seconds, t("data.seconds", language)),
        _number(scores.snr_db, t("data.snr_db", language)),
        _number(scores.chars_per_second, t("data.letters_per_second", language)),
        _number(scores.confidence, t("data.confidence", language), 2),
        cell(_status(clip, language), classes="mark warn" if clip.status == "excluded" else "mark"),
        cell(Path(clip.source).name),
    )


def _number(value: float | None, title: str, digits: int = 1) -> str:
    return f'<td class="number" data-title="{escape(title)}">{"–" if value is None else f"{value:.{digits}f}"}</td>'


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
    head = f"<h3>{escape(clip.text or t('data.no_text', language))}</h3>{note(facts)}{note(clip.id)}"
    if not clip.audio:
        return head + note(t("data.clip_without_audio", language))
    player = (
        f'<audio controls preload="metadata" data-seconds="{clip.span.seconds:.3f}" '
        f'src="{audio_url(folder, clip)}" aria-label="{escape(t("data.clip_audio", language))}"></audio>'
    )
    try:
        wave = _waveform(audio.load(folder / clip.audio, WAVE_RATE), t("data.clip_waveform", language))
    except AmharicTtsError as error:
        return head + note(describe_error(error, language))
    return head + wave + player


def audio_url(folder: Path, clip: Clip) -> str:
    """Return where the browser fetches the audio of a clip."""
    return escape(f"gradio_api/file={quote((folder.resolve() / clip.audio).as_posix())}")


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
