"""Show the System tab with models and consent in folders of their own.

Run it as ``python -m tests.ui.one_consent OUTPUT PORT``. The programs that the page starts know no other folders, so
they are told of the consent by the variable that is made for it; the page itself is not.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from utils.core import paths


def main(words: Sequence[str]) -> None:
    output, port = words
    paths.MODELS = Path(output) / ".models"
    paths.LICENCE_CONSENT = Path(output).parent / "consent.json"  # before anything imports it by its name
    from tests.ui import one_tab
    from utils.xtts.hub import VARIABLE

    python = Path(output).parent / "python"
    python.write_text(f'#!/bin/sh\n{VARIABLE}=1 exec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    os.environ.pop(VARIABLE, None)
    sys.executable = str(python)
    one_tab.main(["system", output, port])


if __name__ == "__main__":
    main(sys.argv[1:])
