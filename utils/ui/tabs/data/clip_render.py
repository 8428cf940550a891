"""The clip table and the chosen clip, as HTML; knows nothing of gradio."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
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
MOST_LETTERS = 160  # of a text in the table

WAVE_WIDTH, WAVE_HEIGHT = 600, 120

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

# Listens on the element itself, so that it goes on hearing after its content was replaced.
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


@dataclass(frozen=True)
class Abilities:
    """Why each action on the chosen clip cannot be taken now; empty when it can."""

    edit: str = ""
    approve: str = ""
    aside: str = ""
    restore: str = ""
    cut: str = ""
    merge: str = ""

    @property
    def named(self) -> dict[str, str]:
        """Return the reasons by the label of the button."""
        return {
            "data.save_text": self.edit,
            "data.approve": self.approve,
            "data.exclude": self.aside,
            "data.restore": self.restore,
            "data.trim": self.cut,
            "data.split": self.cut,
            "data.merge_next": self.merge,
        }


NOTHING_CHOSEN = Abilities(*["data.choose_clip_first"] * 6)
IN_WORK = "data.clips_in_use_by_run"
NO_SOUND = "data.clip_without_audio"
NO_TEXT = "data.clip_without_text"


def rows(page: ClipPage, chosen: str, folder: Path, language: str) -> str:
    """Show one page of clips."""
    if not page.clips:
        return note(t("data.no_matching_clips", language))
    titles = [
        t(title, language)
        for title in (
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
    ]
    drawn = table(titles, [_row(clip, folder, language) for clip in page.clips], classes="stack")
    every = escape(t("data.select_page", language))
    drawn = drawn.replace(
        f'<th scope="col">{escape(titles[0])}</th>',
        f'<th scope="col"><input type="checkbox" data-all="1" aria-label="{every}"></th>',
        1,
    )
    if chosen:
        drawn = drawn.replace(
            f'<tr><td><input type="checkbox" data-tick="{escape(chosen)}"',
            f'<tr class="chosen"><td><input type="checkbox" data-tick="{escape(chosen)}"',
            1,
        )
    return drawn


def _row(clip: Clip, folder: Path, language: str) -> Sequence[str]:
    name, text = escape(clip.id), clip.text[:MOST_LETTERS] or f"({t('data.no_text', language)})"
    label, sound = escape(f"{t('data.play', language)}: {text}"), escape(address(folder, clip))
    play = f'<button type="button" class="play" data-play="{sound}" aria-label="{label}">▶</button>'
    tick = escape(f"{t('data.select', language)}: {text}")
    scores = clip.scores
    return (
        f'<td><input type="checkbox" data-tick="{name}" aria-label="{tick}"></td>',
        f"<td>{play if clip.audio else '–'}</td>",
        f'<td><button type="button" class="text" data-clip="{name}">{escape(text)}</button></td>',
        _number(clip.span.seconds, t("data.seconds", language)),
        _number(scores.snr_db, t("data.snr_db", language)),
        _number(scores.chars_per_second, t("data.letters_per_second", language)),
        _number(scores.confidence, t("data.confidence", language), 2),
        cell(status(clip, language), classes="mark warn" if clip.status == "excluded" else "mark"),
        cell(Path(clip.source).name),
    )


def _number(value: float | None, title: str, digits: int = 1) -> str:
    return f'<td class="number" data-title="{escape(title)}">{"–" if value is None else f"{value:.{digits}f}"}</td>'


def status(clip: Clip, language: str) -> str:
    """Say in words and with a sign what became of a clip."""
    if clip.status == "excluded":
        return f"✗ {translate(clip.reason, language)}"
    return (
        f"✓ {t('data.clip_approved', language)}" if clip.reason == APPROVED else f"· {t('data.clip_in_use', language)}"
    )


def details(clip: Clip, folder: Path, language: str) -> str:
    """Show the chosen clip: what is known of it, its player and its waveform."""
    start, end = _clock(clip.span.start), _clock(clip.span.end)
    head = f"<h3>{escape(clip.text or t('data.no_text', language))}</h3>"
    split = translate(clip.split, language) if clip.split else t("data.no_split", language)
    place = f"{Path(clip.source).name} · {start}-{end} · {clip.speaker} · {split}"
    facts = note(f"{status(clip, language)} · {place}") + note(clip.id)
    if not clip.audio:
        return head + facts + note(t(NO_SOUND, language))
    label = escape(t("data.clip_audio", language))
    player = (
        f'<audio controls preload="metadata" data-seconds="{clip.span.seconds:.3f}" '
        f'src="{escape(address(folder, clip))}" aria-label="{label}"></audio>'
    )
    try:
        wave = waveform(audio.load(folder / clip.audio, WAVE_RATE), t("data.clip_waveform", language))
    except AmharicTtsError as error:
        return head + facts + note(describe_error(error, language))
    return head + facts + wave + player


def abilities(clip: Clip, following: Clip | None, *, busy: bool) -> Abilities:
    """Say what can be done with a clip."""
    if busy:
        return Abilities(*[IN_WORK] * 6)
    lacking = NO_SOUND if not clip.audio else NO_TEXT if not clip.text.strip() else ""
    approved = clip.status == "kept" and clip.reason == APPROVED
    untouched = clip.status == "kept" and not approved
    return Abilities(
        approve=lacking or ("data.already_approved" if approved else ""),
        aside="data.already_excluded" if clip.status == "excluded" else "",
        restore="data.already_in_use" if untouched else lacking,
        cut="" if clip.audio else NO_SOUND,
        merge=_merge(clip, following),
    )


def _merge(clip: Clip, following: Clip | None) -> str:
    if not clip.audio:
        return NO_SOUND
    if following is None:
        return "data.no_next_clip"
    return "" if following.span.end - clip.span.start <= LIMIT else "data.merge_too_long"


def pager(page: ClipPage, language: str) -> str:
    """Say which page of how many is shown."""
    words = t("data.page_of", language, number=page.number, pages=page.pages, total=page.total)
    return note(words)


def address(folder: Path, clip: Clip) -> str:
    """Return where the browser fetches the sound of a clip."""
    return f"gradio_api/file={quote((folder.resolve() / clip.audio).as_posix())}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}:{rest:05.2f}"


def waveform(samples: Samples, label: str) -> str:
    """Draw the outline of a sound, with the marks that the sliders move."""
    return (
        f'<div class="wave"><svg viewBox="0 0 {WAVE_WIDTH} {WAVE_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}"><path d="{outline(samples)}"/></svg>'
        '<i class="before"></i><i class="after"></i><i class="cut"></i><i class="now"></i></div>'
    )


def outline(samples: Samples) -> str:
    """Return the path around the loudest points of each stretch."""
    if not samples.size:
        return "M0 0"
    edges = np.linspace(0, samples.size, min(WAVE_WIDTH, samples.size) + 1).astype(int)
    parts = [samples[begin:end] for begin, end in pairwise(edges)]
    top = max(1e-3, float(np.abs(samples).max()))
    middle = WAVE_HEIGHT / 2
    step = WAVE_WIDTH / len(parts)
    upper = [
        f"{number * step:.0f} {middle - middle * float(part.max()) / top:.1f}" for number, part in enumerate(parts)
    ]
    lower = [
        f"{number * step:.0f} {middle - middle * float(part.min()) / top:.1f}" for number, part in enumerate(parts)
    ]
    return f"M{'L'.join([*upper, *reversed(lower)])}Z"
