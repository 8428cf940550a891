"""The commands of the guide to data run as they are written."""

import re
import shlex
from pathlib import Path

import pytest

from tests.dataset.recordings import sentences
from utils.__main__ import main
from utils.core.paths import ROOT
from utils.dataset.store import load_dataset
from utils.media import audio
from utils.media.rates import RATE
from utils.studio.paths import Project

GUIDE = (ROOT / "docs" / "DATA.md").read_text(encoding="utf-8").partition("## Corpora")[0]
COMMANDS = [
    line.split("  #")[0].strip()
    for block in re.findall(r"(?ms)^```bash\n(.*?)^```", GUIDE)
    for line in block.splitlines()
]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with ten recordings of speech, and a list of them whose columns have names of their own."""
    lines = ["nr;datei;satz;wer"]
    (tmp_path / "recordings").mkdir()
    for number, (text, samples) in enumerate(sentences(RATE)[:10]):
        audio.save(tmp_path / "recordings" / f"{number}.wav", samples, RATE)
        lines.append(f"{number};{number}.wav;{text};almaz")
    (tmp_path / "recordings" / "liste.csv").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_commands_of_the_guide_run_as_written(home: Path, capsys: Capture) -> None:
    for line in COMMANDS:
        words = [str(Path(word).expanduser()) for word in shlex.split(line)]
        if words[0] == "mkdir":
            Path(words[1]).mkdir()
            continue
        assert words[0] == "start.sh"
        if words[2] == "prompts/list.csv":  # somebody has read the first five sentences
            names = [row.partition("|")[0] for row in (home / "prompts/list.csv").read_text("utf-8").splitlines()[1:6]]
            for number, name in enumerate(names):
                (home / "recordings" / f"{number}.wav").rename(home / "prompts" / name)
        code = main([*words[1:], "--output", str(home / "output")])
        assert code == 0, (line, capsys.readouterr())
    clips = load_dataset(Project(home / "output" / "mine").dataset).clips.values()
    assert {clip.speaker for clip in clips} == {"almaz"}
