"""What gradio itself shows: its few words in the language of the page, and names that screen readers accept."""

import json

from utils.ui.error_text import translate

WORDS = ("Drop File Here", "Drop Audio Here", "- or -", "Click to Upload", "Error", "Warning", "Info")

# A label that says something else than what stands on a button, and one on an element that may have none, confuse those
# who cannot see the page; axe-core counts both as serious.
SCRIPT = """
(() => {
  const words = %s;
  const back = Object.fromEntries(Object.entries(words).map(([english, other]) => [other, english]));
  let waiting = false;
  const say = (box) => {
    const known = document.documentElement.lang === "am" ? words : back;
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const found = known[walker.currentNode.data.trim()];
      if (found) walker.currentNode.data = ` ${found} `;
    }
  };
  const mend = () => {
    waiting = false;
    for (const box of document.querySelectorAll("button.upload-container")) {
      box.removeAttribute("aria-label");
      box.removeAttribute("aria-dropeffect");
      say(box);
    }
    document.querySelectorAll(".toast-title").forEach(say);
    for (const empty of document.querySelectorAll("div.empty[aria-label]")) empty.removeAttribute("aria-label");
    for (const head of document.querySelectorAll(".toast-header[role]")) {  // its close button stays one
      head.removeAttribute("role");
      head.removeAttribute("tabindex");
    }
  };
  const soon = () => { if (!waiting) { waiting = true; setTimeout(mend, 250); } };
  new MutationObserver(soon).observe(document.documentElement, {childList: true, subtree: true});
  new MutationObserver(soon).observe(document.documentElement, {attributeFilter: ["lang"]});
  soon();
})();
"""


def head() -> str:
    """Return the scripts for the head of the page."""
    words = json.dumps({word: translate(word, "am") for word in WORDS}, ensure_ascii=False)
    return f"<script>{SCRIPT % words}</script>"
