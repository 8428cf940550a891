"""Waits until a page has come to rest, without a fixed time."""

from playwright.sync_api import Page

QUIET = 400  # milliseconds without a change
SETTLED = """quiet => new Promise(done => {
  const over = () => { watcher.disconnect(); done(); };
  let timer = setTimeout(() => over(), quiet);
  const watcher = new MutationObserver(changes => {
    if (changes.every(change => change.target.parentElement?.closest("#readings"))) return;
    clearTimeout(timer);
    timer = setTimeout(over, quiet);
  });
  watcher.observe(document.body, {childList: true, subtree: true, characterData: true});
})"""


def settle(page: Page) -> None:
    """Wait until nothing has changed for a while, the readings apart, which change with every tick."""
    page.evaluate(SETTLED, QUIET)
