"""Comparisons that the page starts."""

import pytest

from utils.cli.evaluate import print_progress
from utils.core.events import Progress
from utils.studio.comparisons import PROGRESS_LINE


@pytest.mark.parametrize("message", ["", "ሰላም 1/2 · ለዓለም"])
def test_the_page_reads_the_progress_that_evaluate_prints(capsys: pytest.CaptureFixture[str], message: str) -> None:
    print_progress(Progress(3, 10, part="run-2 step_5", message=message))
    match = PROGRESS_LINE.fullmatch(capsys.readouterr().out.rstrip("\n"))
    assert match
    assert match.groups() == ("run-2 step_5", "3", "10")
