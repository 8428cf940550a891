"""What gradio itself shows: its few words in the language of the page, and names that screen readers accept."""

import json

from utils.ui.words import amharic

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


# After each event gradio renews the status of every widget that any event before has read, hidden ones too, and looks
# through the whole page for each: with five tabs at rest that took the browser 2.0 s of every 10, and without 0.35 s.
QUICKER = """
(() => {
  const entries = Object.entries;
  const isStatus = (one) => one && typeof one === "object" && "fn_index" in one && "component_id" in one;
  Object.entries = (given) => {
    const found = entries(given);
    if (!found.length || !isStatus(found[0][1])) return found;
    return found.filter(([, one]) => one.show_progress !== "hidden");
  };
})();
"""

# When the page opens, gradio looks through all events for each widget, twice, and watches what it reads on the way for
# changes, which took 1.6 s of 4. Its framework watches plain objects only; these never change.
UNWATCHED = """
(() => {
  const still = {};
  const {components = [], dependencies = [], layout = {}} = window.gradio_config ?? {};
  for (const part of [...components, ...dependencies, ...(layout.children ?? [])]) Object.setPrototypeOf(part, still);
})();
"""


def head() -> str:
    """Return the scripts for the head of the page."""
    words = json.dumps({word: amharic()[word] for word in WORDS}, ensure_ascii=False)
    return f"<script>{UNWATCHED}{QUICKER}{SCRIPT % words}</script>"
