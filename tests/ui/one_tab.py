"""Show the page with one tab alone, so that a test of that tab does not wait for the others.

Run it as ``python -m tests.ui.one_tab TAB OUTPUT PORT``.
"""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from utils.ui import app
from utils.ui.tabs import pronunciation


def main(words: Sequence[str]) -> None:
    tab, output, port = words
    # the light one goes with it: of a single output, gradio takes a list of updates for its value, here for the clock's
    app.TABS = (importlib.import_module(f"utils.ui.tabs.{tab}.tab"), pronunciation)  # type: ignore[assignment]
    page = app.launch(Path(output), host="127.0.0.1", port=int(port), share=False, who=None)
    sys.stdout.write(f"The page is at {str(page.local_url).rstrip('/')}\n")
    sys.stdout.flush()
    page.block_thread()


if __name__ == "__main__":
    main(sys.argv[1:])
