"""Show the page with one tab alone, so that a test of that tab does not wait for the others.

Run it as ``python -m tests.ui.one_tab TAB OUTPUT PORT [own-consent]``. With the last word, models and consent are in
folders of their own. The child processes of the page know only the usual ones: they get the variable for consent.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from utils.studio import paths


def main(words: Sequence[str]) -> None:
    tab, output, port, *options = words
    if options:
        use_own_consent(Path(output))
    from utils.ui import app

    app.TABS = (importlib.import_module(f"utils.ui.tabs.{tab}.tab"),)  # type: ignore[assignment]
    page = app.launch(Path(output), host="127.0.0.1", port=int(port), share=False, who=None)
    sys.stdout.write(f"The page is at {page.link}\n")
    sys.stdout.flush()
    page.wait()


def use_own_consent(output: Path) -> None:
    paths.MODELS = output / ".models"
    paths.LICENCE_CONSENT = output.parent / "consent.json"  # before anything imports it by its name
    from utils.xtts.hub import VARIABLE

    python = output.parent / "python"
    python.write_text(f'#!/bin/sh\n{VARIABLE}=1 exec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    os.environ.pop(VARIABLE, None)
    sys.executable = str(python)


if __name__ == "__main__":
    main(sys.argv[1:])
