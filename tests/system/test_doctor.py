"""The doctor finds what is wrong and names the cure."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.fake_gpus import FakeGpu
from utils.core.paths import ROOT
from utils.studio import paths
from utils.system import doctor, packages
from utils.xtts.device import UNTESTED
from utils.xtts.files import HUB_FILES
from utils.xtts.hub import VARIABLE


@pytest.mark.slow
def test_the_doctor_answers_in_json(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "utils", "doctor", "--json", "--output", str(tmp_path)]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    findings = {finding["name"]: finding for finding in json.loads(run.stdout)}
    assert {"Python", "Packages", "Device", "RAM", "Disk", "Media decoding"} <= findings.keys()
    assert "; vocoder " in findings["Precision of speech"]["detail"]
    assert findings["Precision of training"]["detail"].startswith(("bf16: this CPU", "fp32: this CPU"))
    assert run.returncode == int(any(finding["verdict"] == "fail" for finding in findings.values()))
    assert all(finding["cure"] for finding in findings.values() if finding["verdict"] == "fail")


def test_a_package_of_another_version_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text('[project]\ndependencies = ["numpy==0.0.1", "no-such-package==1.0"]\n', encoding="utf-8")
    monkeypatch.setattr(packages, "PROJECT", project)
    verdicts = {finding.name: finding.verdict for finding in doctor.packages(tmp_path)}
    assert verdicts == {"numpy": "warn", "no-such-package": "fail", "Packages": "warn"}


@pytest.mark.parametrize("kind", UNTESTED)
def test_a_gpu_on_which_nothing_has_run_is_named(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FakeGpu(monkeypatch, kind)
    (found,) = doctor.torch_device(tmp_path)
    assert (found.verdict, found.name) == ("warn", "Device")
    assert f"({kind})" in found.detail
    assert "never run on such a GPU" in found.detail
    assert "--device cpu" in found.cure
    assert f"fp32: half precision on {kind} is not tested here" in [each.detail for each in doctor.precision(tmp_path)]


def make_model(folder: Path, *, leave_out: str = "", cut: str = "") -> None:
    folder.mkdir(parents=True)
    for name in HUB_FILES:
        if name.endswith(".json"):
            (folder / name).write_text(json.dumps({"names": ["x"] * 100}), encoding="utf-8")
        else:
            with zipfile.ZipFile(folder / name, "w") as file:
                file.writestr("data", "x" * 1000)
        if name == cut:
            (folder / name).write_bytes((folder / name).read_bytes()[:68])
    (folder / leave_out).unlink() if leave_out else None


@pytest.mark.parametrize(
    ("leave_out", "cut", "verdict", "said"),
    [
        ("", "", "pass", "v2.0.2 is complete"), ("vocab.json", "", "fail", "vocab.json is missing"),
        ("", "model.pth", "fail", "model.pth is truncated"), ("", "vocab.json", "fail", "vocab.json is truncated"),
    ],
)  # fmt: skip
def test_a_broken_base_model_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leave_out: str, cut: str, verdict: str, said: str
) -> None:
    monkeypatch.setattr(paths, "MODELS", tmp_path)
    make_model(tmp_path / "v2.0.2", leave_out=leave_out, cut=cut)
    monkeypatch.setenv(VARIABLE, "1")
    finding, licence = doctor.base_model(tmp_path)
    assert (licence.verdict, licence.detail) == ("pass", "accepted")
    assert (finding.verdict, said in finding.detail) == (verdict, True)


def test_a_folder_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (finding,) = doctor.write_access(tmp_path / "file" / "output")
    assert finding.verdict == "fail"
    assert finding.cure
