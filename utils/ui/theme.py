"""Theme, CSS, and a script that translates gradio's own words and corrects names for screen readers."""

import json

import gradio as gr

from utils.ui.i18n import translate

# System fonts only, so nothing is downloaded: Ethiopic fonts of Linux, Windows, SIL and macOS after a Latin one.
ETHIOPIC = ("Noto Sans Ethiopic", "Nyala", "Ebrima", "Abyssinica SIL", "Kefa")
FONTS = ("system-ui", "Segoe UI", "Noto Sans", *ETHIOPIC, "sans-serif")
FIXED_FONTS = ("ui-monospace", "Consolas", "Noto Sans Mono", *ETHIOPIC, "monospace")

CSS = """
.gradio-container { width: 100%; max-width: 1240px !important; margin: 0 auto !important; }
.gradio-container .prose h2 { margin: 0.5em 0 0; }
#top { align-items: center; }
#top h1 { margin: 0; font-size: 1.4rem; }
#top .form:has(#language) { min-width: min(100%, 270px) !important; flex: 0 1 auto !important; }
.html-container { padding: 0 !important; }
.html-container:has(> .prose:empty) { display: none; }
.block:has(> .html-container > .prose:empty):not(:has(> .wrap:not(.hide))) { display: none; }
button.label-wrap { text-align: start; }
.secondary-wrap input { text-overflow: ellipsis; padding-inline-end: 1.8rem !important; }
/* Keep all tabs visible: gradio moves those that do not fit into a menu that is not announced as tabs. */
.tab-container.visually-hidden button { padding: 0 !important; font-size: 0 !important; letter-spacing: 0 !important; }
.tab-wrapper { height: auto !important; }
.tab-container[role="tablist"] { flex-wrap: wrap; height: auto !important; overflow: visible !important; }
.tab-container[role="tablist"] button { min-height: 2rem; }
#guide-text:has(.guide .prose:empty) { display: none; }
.scroll { overflow: auto; max-height: 36rem; margin-block: 4px 12px; }
table.facts { border-collapse: collapse; width: 100%; margin: 0 !important;
  border: 0 !important; font-size: var(--text-sm); }
table.facts :is(thead, tbody, tr) { border: 0 !important; }
table.facts th, table.facts td { text-align: start; vertical-align: top; padding: 6px 10px;
  border: 0 !important; border-bottom: 1px solid var(--border-color-primary) !important; overflow-wrap: break-word; }
table.facts.stack td { overflow-wrap: anywhere; }
table.facts th { color: var(--body-text-color-subdued); font-weight: 600; white-space: nowrap; }
table.facts td.mark { white-space: nowrap; font-weight: 600; }
.pass, .finished { color: #047857; }
.warn, .stopped, .lost { color: #92400e; }
.fail, .failed, .unreadable { color: #b91c1c; }
.running, .starting { color: #1d4ed8; }
/* Gradio rewrites these selectors, and of several in a row only the first keeps its .dark. */
.dark :is(.pass, .finished) { color: #6ee7b7; }
.dark :is(.warn, .stopped, .lost) { color: #fcd34d; }
.dark :is(.fail, .failed, .unreadable) { color: #fca5a5; }
.dark :is(.running, .starting) { color: #93c5fd; }
.cards { display: flex; flex-wrap: wrap; gap: 4px 24px; font-size: var(--text-sm); }
.cards small { color: var(--body-text-color-subdued); font-size: inherit; margin-inline-end: 6px; }
.cards b { font-variant-numeric: tabular-nums; }
.dark audio { color-scheme: dark; }
.message.success { border-inline-start: 4px solid #047857; padding-inline-start: 10px; }
.message.warning { border-inline-start: 4px solid #b45309; padding-inline-start: 10px; }
.message.error { border-inline-start: 4px solid #b91c1c; padding-inline-start: 10px; }
.message :is(p, li) { font-size: var(--text-sm); margin: 4px 0; overflow-wrap: anywhere; }
.message ul { margin: 0; }
details.more > summary { cursor: pointer; font-size: var(--text-sm); }
.fields, .fields > .form { display: grid !important; gap: var(--layout-gap) !important;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 250px), 1fr)) !important; }
.fields > .form { grid-column: 1 / -1; border: 0; background: none; box-shadow: none; }
.gradio-container .fields > .form > .block { border-width: var(--block-border-width) !important;
  border-radius: var(--block-radius) !important; }
.fields > .column { gap: 2px; }
.beside { align-items: flex-end !important; }
progress { width: 100%; height: 8px; appearance: none; border: 0; border-radius: 4px; overflow: hidden;
  background: var(--border-color-primary); }
progress::-webkit-progress-bar { background: var(--border-color-primary); }
progress::-webkit-progress-value { background: #059669; }
progress::-moz-progress-bar { background: #059669; }
.long-list .wrap { flex-flow: column nowrap; max-height: 16rem; overflow: auto; gap: 4px; }
.long-list label { width: 100%; flex-shrink: 0; overflow-wrap: anywhere; }
.hint { color: var(--body-text-color-subdued); font-size: var(--text-sm); margin: 2px 0; }
button[role="tab"].selected { color: #047857 !important; }
.dark button[role="tab"].selected { color: #6ee7b7 !important; }
@media (max-width: 600px) {
  .gradio-container { padding: 8px !important; }
  #top > :first-child { flex-basis: 100%; }
  table.facts:not(.stack) :is(th, td) { padding-inline: 4px; white-space: normal; }
  table.facts.stack thead { position: absolute; clip-path: inset(50%); }
  table.facts.stack tr { display: block; padding: 6px 0;
    border-bottom: 1px solid var(--border-color-primary) !important; }
  table.facts.stack td { display: block; border: 0 !important; padding: 1px 4px; }
}
"""


# gradio's own words, which the script translates
GRADIO_WORDS = ("Drop File Here", "Drop Audio Here", "- or -", "Click to Upload", "Error", "Warning", "Info")

# A label that differs from the text on a button, and one on an element that may have none, mislead screen readers;
# axe-core counts both as serious.
SCRIPT = """
(() => {
  const words = %s;
  const back = Object.fromEntries(Object.entries(words).map(([english, other]) => [other, english]));
  let waiting = false;
  const translate = (box) => {
    const known = document.documentElement.lang === "am" ? words : back;
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const match = known[walker.currentNode.data.trim()];
      if (match) walker.currentNode.data = ` ${match} `;
    }
  };
  const patch = () => {
    waiting = false;
    for (const box of document.querySelectorAll("button.upload-container")) {
      box.removeAttribute("aria-label");
      box.removeAttribute("aria-dropeffect");
      translate(box);
    }
    document.querySelectorAll(".toast-title").forEach(translate);
    for (const empty of document.querySelectorAll("div.empty[aria-label]")) empty.removeAttribute("aria-label");
    for (const mark of document.querySelectorAll("svg [role='graphics-symbol']:not([aria-label])")) {  // of charts
      mark.removeAttribute("role");
    }
    for (const head of document.querySelectorAll(".toast-header[role]")) {  // its close button stays one
      head.removeAttribute("role");
      head.removeAttribute("tabindex");
    }
  };
  const soon = () => { if (!waiting) { waiting = true; setTimeout(patch, 250); } };
  const changes = {childList: true, subtree: true, attributeFilter: ["lang", "role"]};
  new MutationObserver(soon).observe(document.documentElement, changes);
  soon();
})();
"""


def theme() -> gr.themes.Base:
    """Make the theme. White text on its buttons has a contrast above 4.5."""
    return gr.themes.Default(
        primary_hue="emerald", secondary_hue="slate", neutral_hue="slate", font=FONTS, font_mono=FIXED_FONTS
    ).set(
        button_primary_background_fill="*primary_700",
        button_primary_background_fill_dark="*primary_700",
        button_primary_background_fill_hover="*primary_800",
        button_primary_background_fill_hover_dark="*primary_600",
        button_cancel_background_fill="#b91c1c",
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_300",
        body_text_color_subdued="*neutral_600",
        body_text_color_subdued_dark="*neutral_300",
        color_accent="*primary_700",
    )


def head() -> str:
    """Return the script for the head of the page."""
    words = json.dumps({word: translate(word, "am") for word in GRADIO_WORDS}, ensure_ascii=False)
    return f"<script>{SCRIPT % words}</script>"
