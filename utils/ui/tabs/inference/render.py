"""What the tab shows, as HTML made from plain facts; knows nothing of gradio."""

import time
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from utils.core.languages import find
from utils.ui import error_text
from utils.ui.error_text import translate
from utils.ui.i18n import t
from utils.ui.tabs.inference.model_session import Card, Studio
from utils.ui.tabs.inference.pronunciation import Seen
from utils.ui.views import cards, cell, error_box, message_box, note, progress_bar, table
from utils.workspace.takes import Sentence, Take
from utils.xtts.tokenizer import TokenizedText

MOST_ROWS = 60  # sentences in the table of what the model reads
SHOWN = 60  # letters of a text in a list

FLAGS = {
    "broken": "inference.flag_broken",
    "nothing": "inference.flag_nothing",
    "silent": "inference.flag_silent",
    "speechless": "inference.flag_speechless",
    "endless": "inference.flag_endless",
    "loop": "inference.flag_loop",
    "short": "inference.flag_short",
    "long": "inference.flag_long",
    "pause": "inference.flag_pause",
    "noise": "inference.flag_noise",
    "ending": "inference.flag_ending",
    "clipped": "inference.flag_clipped",
    "timing": "inference.flag_timing",
}
MODES = {
    "latin": "inference.mode_latin",
    "ipa": "inference.mode_ipa",
    "fidel": "inference.mode_fidel",
}
BACKENDS = {"rules": "inference.backend_rules", "epitran": "inference.backend_epitran"}

CSS = """
#inference-tab mark { background: #fecaca; color: #7f1d1d; padding: 0 3px; border-radius: 3px; }
#inference-tab .downloads { display: flex; flex-wrap: wrap; gap: 6px 14px; font-size: var(--text-sm); margin: 4px 0; }
#inference-tab .downloads a { color: #047857; text-decoration: underline; }
.dark #inference-tab .downloads a { color: #6ee7b7; }
#inference-tab .html-container audio { width: 100%; min-width: 180px; max-width: 420px; height: 40px; display: block; }
#takes .wrap, #sentences .wrap { max-height: 18rem; }
#inference-tab td.reads { font-family: var(--font-mono); font-size: 0.85em; overflow-wrap: anywhere; }
#inference-tab .settings > .form { display: grid !important; gap: 10px; background: none; border: 0; box-shadow: none;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 230px), 1fr)) !important; }
#inference-tab .settings > .form > * { border: 1px solid var(--border-color-primary) !important;
  border-radius: var(--block-radius); }
#stream-chunk { display: none !important; }
"""


def working(sentence: str, step: int = 0, total: int = 0) -> str:
    """Show what is going on, with a bar where its end is known."""
    shown = progress_bar(f"{step} / {total}", step, total) if total else ""
    return f"<p>{escape(sentence)}</p>{shown}"  # not aloud: it is shown anew on every beat


def address(path: Path) -> str:
    """Return where the browser finds a file of a project; a file that was changed gets another address."""
    try:
        version = f"?v={path.stat().st_mtime_ns}"
    except FileNotFoundError:  # deleted at this moment
        version = ""
    return f"gradio_api/file={quote(path.as_posix())}{version}"


def link(path: Path, words: str) -> str:
    """Offer a file to download."""
    return f'<a href="{escape(address(path))}" download="{escape(path.name)}">{escape(words)}</a>'


def downloads(links: Iterable[str]) -> str:
    """Show several links in a row."""
    return f'<div class="downloads">{"".join(links)}</div>'


def player(path: Path, label: str) -> str:
    """Show a small player."""
    return f'<audio controls preload="none" src="{escape(address(path))}" aria-label="{escape(label)}"></audio>'


# --- the model ---


def model(studio: Studio, place: str, reads: dict[str, str] | None, error: BaseException | None, language: str) -> str:
    """Show what is in memory, and what the chosen model says of itself."""
    parts = []
    if studio.loading:
        seconds = f"{studio.loading_seconds:.0f}"
        parts.append(working(t("inference.loading_for", language, seconds=seconds)))
    if error:
        parts.append(error_box(error, language))
    if studio.card:
        parts.append(card(studio.card, studio.users, language))
        if place and studio.card.place != place:
            parts.append(note(t("inference.other_model_selected", language)))
    elif not studio.loading:
        parts.append(note(t("inference.no_model_loaded", language)))
    if reads is not None and (studio.card is None or studio.card.place != place):
        parts.append(cards({"inference.chosen_model_reads": reading_of(reads, language)}, language))
    return "".join(parts)


def card(known: Card, users: int, language: str) -> str:
    """Show what is known of the model in memory."""
    memory = f"{known.gib:.2f} GiB"
    if known.graphics_gib > 0.005:
        memory += f" + {known.graphics_gib:.2f} GiB ({t('common.gpu', language)})"
    took = t("inference.loaded_in", language, seconds=f"{known.seconds:.1f}")
    sound = f"{t('inference.sound', language)} {known.reasons[1]}"
    rows = {
        "inference.in_memory": f"{known.name} · {memory} · {took}",
        "inference.computes_on": f"{known.device} · GPT {known.reasons[0]} · {sound}",
        "common.model_reads": reading_of(known.reads, language),
        "inference.speaks": ", ".join(find(code).native_name or code for code in known.languages),
        "common.training": training(known, language),
        "common.in_use": t("inference.users_now", language, count=users) if users else "",
    }
    return cards({name: value for name, value in rows.items() if value}, language) + message_box(
        "warning", *known.notices
    )


def training(known: Card, language: str) -> str:
    """Say where a model comes from, as far as it says so."""
    parts = [str(known.about["run"])] if known.about.get("run") else []
    if known.about.get("step") is not None:
        parts.append(f"{t('common.step', language)} {known.about['step']}")
    if isinstance(loss := known.about.get("eval_loss"), int | float):
        parts.append(t("common.evaluation_loss", language, loss=f"{loss:.4f}"))
    return " · ".join(parts)


def reading_of(reads: dict[str, str], language: str) -> str:
    """Say how a model reads its added language, from its metadata."""
    if not reads:
        return t("inference.published_languages", language)
    parts = [find(reads["language"]).native_name, t(MODES.get(reads["mode"], reads["mode"]), language)]
    if reads["mode"] != "fidel":
        parts.append(
            f"{t('inference.amharic_g2p', language)}: {t(BACKENDS.get(reads['backend'], reads['backend']), language)}"
        )
    if reads.get("overrides", "0") != "0":
        parts.append(t("inference.lexicon_size", language, count=reads["overrides"]))
    return " · ".join(parts)


# --- the text ---


def counter(seen: Seen, seconds: float | None, language: str) -> str:
    """Count sentences and tokens, and say what cannot be read."""
    if not seen.readings:
        return note(error_text.describe(seen.error, language)) if seen.error else ""
    values = {"count": len(seen.readings), "longest": seen.longest, "limit": seen.limit}
    counted = t("inference.sentence_count", language, **values)
    if seconds is not None:
        counted += " · " + t("inference.estimated_length", language, seconds=f"{seconds:.0f}")
    if not seen.whole:
        counted += " · " + t("inference.text_truncated", language)
    shown = note(counted)
    if seen.unreadable:
        signs = " ".join(f"<mark>{escape(sign)}</mark>" for sign in seen.unreadable)
        why = escape(t("inference.unsupported_characters", language))
        shown += f'<div class="message error" role="alert"><p>{why} {signs}</p></div>'
    elif seen.error:
        shown += error_box(seen.error, language)
    if seen.left_out:
        shown += note(t("inference.skipped_characters", language, signs=" ".join(seen.left_out)))
    return shown


def readings(seen: Seen, language: str) -> str:
    """Show each sentence on its way to the model."""
    if not seen.readings:
        return note(t("common.nothing_to_explain", language))
    titles = [
        t(title, language)
        for title in ("common.written", "common.normalised", "common.sounds", "common.model_reads", "inference.tokens")
    ]
    rows = [_row(one, seen.unreadable) for one in seen.readings[:MOST_ROWS]]
    more = len(seen.readings) - MOST_ROWS
    rest = note(t("inference.more_sentences", language, count=more)) if more > 0 else ""
    return table(titles, rows, classes="stack") + rest


def _row(one: TokenizedText, unreadable: Sequence[str]) -> list[str]:
    tokens = f"{len(one.ids)}: {' '.join(one.tokens)}"
    return [
        f"<td>{marked(one.written, (*unreadable, *one.unknown))}</td>",
        cell(one.normalised),
        cell(one.phones),
        f'<td class="reads">{marked(one.model_text, one.unknown)}</td>',
        cell(tokens, classes="reads"),
    ]


def marked(text: str, signs: Iterable[str]) -> str:
    """Mark the signs in a text that cannot be read."""
    bad = {sign for some in signs for sign in some if not sign.isspace()}
    return "".join(f"<mark>{escape(sign)}</mark>" if sign in bad else escape(sign) for sign in text)


# --- takes ---


def flag(text: str, language: str) -> str:
    """Say in plain words what a guard found, with its figures."""
    kind, _, detail = text.partition(":")
    plain = FLAGS.get(kind)
    if not plain:
        return text
    figures = f" ({detail.strip()})" if language == "en" and any(map(str.isdigit, detail)) else ""
    return f"{t(plain, language)}{figures}"


def take_title(take: Take, language: str) -> str:
    """Describe a take in a line."""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(take.made))
    parts = [
        when,
        short(take.text),
        f"{take.seconds:.1f} s",
        f"{t('inference.seed', language)} {take.settings.get('seed', 0)}",
    ]
    parts += [t("inference.stopped_early", language)] if take.unfinished else []
    parts += [flagged(len(take.flags), language)] if take.flags else []
    return " · ".join(parts)


def take_facts(take: Take, language: str) -> str:
    """Show how a take came about, and what the guards found."""
    rows = {
        "inference.model": take.model,
        "inference.voice": take.voice,
        "inference.seed": str(take.settings.get("seed", 0)),
        "common.length": f"{take.seconds:.1f} s",
        "inference.real_time_factor": f"{take.real_time_factor:.2f} s",
    }
    found = [f"{number}: {flag(text, language)}" for number, text in take.flags]
    doubts = message_box("warning", *found[:20], *([f"… + {len(found) - 20}"] if len(found) > 20 else []))
    if not found and take.kind == "speech" and not take.unfinished:
        doubts = message_box("success", t("inference.checks_passed", language))
    early = message_box("warning", t("inference.stopped_early_note", language)) if take.unfinished else ""
    return cards(rows, language) + early + doubts + "".join(note(translate(text, language)) for text in take.notes)


def sentence_title(number: int, one: Sentence, language: str) -> str:
    """Describe a sentence of a take in a line."""
    parts = [
        f"{number} · {short(one.reading.written)}",
        f"{one.seconds:.1f} s",
        f"{t('inference.seed', language)} {one.seed}",
    ]
    if one.tries > 1:
        parts.append(t("inference.tries", language, count=one.tries))
    return " · ".join([*parts, *([flagged(len(one.flags), language)] if one.flags else [])])


def flagged(count: int, language: str) -> str:
    """Say how much the guards found."""
    return f"! {t('inference.warnings', language, count=count)}"


def short(text: str) -> str:
    """Cut a text to what fits into a list."""
    plain = " ".join(text.split())
    return plain if len(plain) <= SHOWN else f"{plain[:SHOWN]}…"
