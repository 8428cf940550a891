"""The wheel with the front end alone reads as the project does, in an environment without it."""

import subprocess
import sys
import zipfile
from pathlib import Path

from utils.amharic import normalize, phonemize, to_latin
from utils.studio.amharic_wheel import build

TEXT = "በ2017 ዓ.ም. 3ኛው ት/ቤት ተከፈተ።"
PROGRAM = f"""
import sys
from amharic_text import explain, normalize, phonemize, to_latin
assert not [name for name in sys.modules if name == "utils" or name.startswith("utils.")]
sys.stdout.reconfigure(encoding="utf-8")
print(to_latin(phonemize(normalize({TEXT!r}))))
"""


def test_it_reads_as_the_project_does(tmp_path: Path) -> None:
    wheel, site = build(tmp_path), str(tmp_path / "site")
    subprocess.run([sys.executable, *f"-m pip install -q --no-deps --target {site} {wheel}".split()], check=True)
    program = f"import sys; sys.path.insert(0, {site!r}){PROGRAM}"
    command = [sys.executable, "-I", "-S", "-c", program]  # with the standard library only
    spoken = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, encoding="utf-8")
    assert spoken.stdout.strip() == to_latin(phonemize(normalize(TEXT)))


def test_it_converts_a_text_in_a_shell(tmp_path: Path) -> None:
    with zipfile.ZipFile(build(tmp_path)) as wheel:
        wheel.extractall(tmp_path / "site")
    command = [sys.executable, "-m", "amharic_text", TEXT]
    spoken = subprocess.run(command, cwd=tmp_path / "site", capture_output=True, check=True, encoding="utf-8")
    assert spoken.stdout.strip() == to_latin(phonemize(normalize(TEXT)))
