"""The field test says what is wrong with weights that are not those of XTTS v2."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from utils.__main__ import main
from utils.cli.field_test import Findings, codec, files, gpt, sizes, speakers, survive, values, vocabulary, vocoder

GPT = "gpt.gpt.h.0.attn.c_attn.weight"
Damage = Callable[[Path], None]


def weights(change: Callable[[dict[str, Any]], object], name: str = "model.pth") -> Damage:
    def damage(folder: Path) -> None:
        content = torch.load(folder / name)
        change(content.get("model", content))
        torch.save(content, folder / name)

    return damage


def settings(name: str, change: Callable[[dict[str, Any]], None]) -> Damage:
    def damage(folder: Path) -> None:
        content = json.loads((folder / name).read_text("utf-8"))
        change(content)
        (folder / name).write_text(json.dumps(content), "utf-8")

    return damage


def scaled(name: str, factor: float) -> Damage:
    return weights(lambda state: state.update({name: state[name].float() * factor}))


DAMAGES = {
    "renamed": (weights(lambda state: state.update({"gpt.odd": state.pop(GPT)})), gpt, "1 missing (gpt.h.0.attn"),
    "shape": (weights(lambda state: state.update({GPT: state[GPT][:, :-1].clone()})), gpt, "1 wrong shape"),
    "not a number": (scaled(GPT, float("nan")), values, f"1 weights are not finite {GPT}"),
    "no vocoder": (
        weights(lambda state: [state.pop(name) for name in [*state] if name.startswith("hifigan")]),
        vocoder,
        "Missing key",
    ),
    "no codec": (lambda folder: (folder / "dvae.pth").unlink(), files, "is missing"),
    "other codec": (
        weights(lambda state: state.update({"codebook.embed": state["codebook.embed"][:8].clone()}), "dvae.pth"),
        codec,
        "dvae.pth",
    ),
    "layers": (settings("config.json", lambda c: c["model_args"].update(gpt_layers=3)), sizes, "gpt_layers is 3"),
    "language": (
        settings(
            "vocab.json", lambda v: v.update(added_tokens=[t for t in v["added_tokens"] if t["content"] != "[tr]"])
        ),
        vocabulary,
        "16 of 17 languages",
    ),
    "tokens": (
        settings("vocab.json", lambda v: v["model"]["vocab"].update({"zzzz": len(v["model"]["vocab"])})),
        vocabulary,
        "tokens for",
    ),
    "speakers": (
        weights(lambda s: s["Tiny Almaz"].update(gpt_cond_latent=torch.zeros(1, 8, 64)), "speakers_xtts.pth"),
        speakers,
        "1 with another shape Tiny Almaz",
    ),
    "truncated": (lambda folder: (folder / "model.pth").write_bytes(b"PK\x03\x04"), gpt, "model.pth"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_is_named(tiny_folder: Path, tmp_path: Path, name: str) -> None:
    damage, check, words = DAMAGES[name]
    folder = tmp_path / "damaged"
    shutil.copytree(tiny_folder, folder)
    damage(folder)
    problems = [line for line in survive(lambda: check(folder)) if line.startswith("!")]
    assert any(words in line for line in problems), problems


@pytest.mark.parametrize("check", [files, vocabulary, gpt, vocoder, speakers])
def test_whole_weights_are_good(tiny_folder: Path, check: Callable[[Path], Findings]) -> None:
    assert not [line for line in survive(lambda: check(tiny_folder)) if line.startswith("!")]


def test_the_report_says_what_to_send_back(
    tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["field-test", "--model", str(tiny_folder), "--only-weights", "--output", str(tmp_path)]
    assert main(words) == 1
    report = tmp_path / "field-test" / "report.md"
    assert f"send back: {report}" in capsys.readouterr().out
    written = report.read_text("utf-8")
    assert "## Weights: " in written
    assert str(tmp_path) not in written


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_small_model_passes_from_its_weights_to_plain_coqui(speaking_folder: Path, tmp_path: Path) -> None:
    model = str(speaking_folder.with_name("base"))
    main(["field-test", "--model", model, "--updates", "2", "--output", str(tmp_path / "out")])
    report = (tmp_path / "out" / "field-test" / "report.md").read_text("utf-8")
    assert "2 updates" in report
    assert "## Export: good" in report
    assert "s of Amharic under hi" in report
