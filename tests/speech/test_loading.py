import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from testing import random_model
from tests.xtts.exporting import plain_model, with_adapter
from utils.core import folders, storage
from utils.core.errors import AmharicTtsError
from utils.core.paths import ROOT, TINY_MODEL
from utils.speech.loading import Companions, LoadedModel, open_model
from utils.studio.models import ListedModel, find_model, list_models, preferred_model
from utils.studio.paths import MODELS
from utils.xtts import checkpoints
from utils.xtts.base_models import ModelSource
from utils.xtts.checkpoints import CheckpointInfo, mark_best, write
from utils.xtts.export import write_ready
from utils.xtts.facts import ModelFileError
from utils.xtts.model import find_recorded_base, fingerprint, gpt_state, load_gpt
from utils.xtts.tokenizer import Tokenizer

State = dict[str, Tensor]
PEAK = """
import sys
from pathlib import Path
from TTS.tts.models import xtts
from tests.peak import peak_mb
from utils.speech.loading import open_model
before = peak_mb()
opened = open_model(Path(sys.argv[1]), as_stored=sys.argv[2] == "stored")
size = sum(weight.numel() * 4 for part in (opened.gpt, opened.vocoder) for weight in part.parameters())
print(before, peak_mb(), size >> 20)
"""
RUN = "going/runs/20260101-120000-train"


@pytest.fixture(scope="module")
def state(tiny_folder: Path, amharic: Tokenizer) -> State:
    """Weights that are not those of the base, in numbers that half precision keeps."""
    return {name: (weight + 0.5).half().float() for name, weight in load_gpt(tiny_folder, amharic).state_dict().items()}


@pytest.fixture(scope="module")
def output(tiny_folder: Path, amharic: Tokenizer, state: State, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two projects: one finished, one with two runs; in the newer run nothing is saved yet."""
    output = tmp_path_factory.mktemp("output")
    write_ready(output / "done" / "ready", tiny_folder, state, amharic, None, {"run": "r", "step": 7, "eval_loss": 2.5})
    run = output / RUN
    for step in (3, 6, 9):
        write(run, state, about(tiny_folder, amharic, step), amharic.save)
    mark_best(run, 6)
    (output / "going" / "runs" / "20260102-120000-train" / "checkpoints").mkdir(parents=True)
    return output


def about(folder: Path, tokenizer: Tokenizer, step: int = 3, **known: Any) -> CheckpointInfo:
    origin = {"base": str(folder), "base_fingerprint": fingerprint(folder)}
    hashes = {"vocabulary_hash": tokenizer.vocabulary.hash}
    return CheckpointInfo(**{"step": step, "eval_loss": 9.0 / step, **origin, **hashes, **known})


def same(opened: LoadedModel, wanted: State, tolerance: float = 0.0) -> bool:
    state = opened.gpt.state_dict()
    return state.keys() == wanted.keys() and all(
        torch.allclose(state[name].float(), wanted[name], rtol=tolerance, atol=tolerance) for name in wanted
    )


@pytest.mark.parametrize(
    ("named", "path"),
    [
        ("", "done/ready"),
        ("going", f"{RUN}/checkpoints/step_6"),
        ("{output}/done", "done/ready"),
        ("{output}/done/ready/model.pth", "done/ready/model.pth"),
        (f"{{output}}/{RUN}/checkpoints", f"{RUN}/checkpoints/step_6"),
        (f" {{output}}/{RUN}/checkpoints/step_3 ", f"{RUN}/checkpoints/step_3"),
    ],
)
def test_a_model_is_found_by_any_of_its_names(output: Path, named: str, path: str) -> None:
    assert find_model(named.format(output=output), output) == output / path


def test_without_a_best_checkpoint_the_newest_is_taken(output: Path, tmp_path: Path) -> None:
    run = shutil.copytree(output / RUN, tmp_path / "run")
    folder = run / "checkpoints" / "step_6"
    manifest = folders.read_manifest(folder, "checkpoint.json")
    manifest["about"]["was_best"] = False
    folders.write_manifest(folder / "checkpoint.json", manifest)
    assert find_model(run).name == "step_9"
    (run / "checkpoints" / "step_9" / "model.safetensors").unlink()
    assert find_model(run).name == "step_6"


@pytest.mark.slow
def test_a_base_version_is_opened_by_its_name(tiny_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_folder, tmp_path / "v2.0.2")
    source = ModelSource(tmp_path, tmp_path, endpoint="http://127.0.0.1:1")
    opened = open_model(find_model("v2.0.2", source=source))
    assert (opened.name, opened.checkpoint, opened.notices) == ("v2.0.2", None, ())
    assert {"en", "zh-cn"} <= set(opened.languages)
    assert "am" not in opened.languages
    assert opened.reference == opened.folder / "reference.wav"


def test_a_finished_model_is_opened_with_all_that_belongs_to_it(output: Path, tiny_folder: Path, state: State) -> None:
    chance = torch.get_rng_state()
    opened = open_model(find_model("", output))
    assert torch.equal(torch.get_rng_state(), chance)
    assert same(opened, state)
    assert not opened.gpt.training
    assert not any(weight.requires_grad for part in (opened.gpt, opened.vocoder) for weight in part.parameters())
    assert opened.name == "done"
    assert opened.tokenizer.settings
    assert opened.languages[-1] == "am"
    assert opened.about.items() >= {"run": "r", "step": 7, "eval_loss": 2.5}.items()
    assert opened.fingerprint == fingerprint(output / "done" / "ready")
    plain = plain_model(tiny_folder)
    assert torch.equal(opened.mel_stats, plain.mel_stats)
    voice = opened.vocoder.state_dict()
    assert all(torch.equal(weight, voice[name]) for name, weight in plain.hifigan_decoder.state_dict().items())


def test_a_checkpoint_is_its_own_gpt_on_the_base_that_it_came_from(
    output: Path, tiny_folder: Path, state: State
) -> None:
    opened = open_model(find_model(output / "going"))
    assert same(opened, state)
    assert next(opened.gpt.parameters()).dtype == torch.float32
    assert opened.name == f"{Path(RUN).name} step 6"
    assert (opened.folder, opened.reference) == (tiny_folder, tiny_folder / "reference.wav")
    assert opened.about.items() >= {"run": Path(RUN).name, "step": 6, "eval_loss": 1.5}.items()
    assert opened.checkpoint
    assert opened.checkpoint.run == output / RUN
    assert opened.fingerprint not in {fingerprint(tiny_folder), ""}


@pytest.mark.slow
@pytest.mark.parametrize(("how", "share"), [pytest.param("copied", 1.1, marks=pytest.mark.long), ("stored", 0.3)])
def test_opening_the_published_size_takes_hardly_more_memory_than_the_model(
    tmp_path_factory: pytest.TempPathFactory, how: str, share: float
) -> None:
    folder = random_model.build(tmp_path_factory.getbasetemp() / "published", sizes=random_model.PUBLISHED)
    command = [sys.executable, "-c", PEAK, str(folder), how]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    before, peak, model = map(int, printed)
    assert model > 1700
    assert peak - before < share * model


def test_a_run_of_coquis_trainer_is_opened_without_changing_it(tiny_folder: Path, tmp_path: Path) -> None:
    content = torch.load(tiny_folder / "model.pth", weights_only=True)["model"]
    folder = tmp_path / "GPT_XTTS-run"
    folder.mkdir()
    weights = {f"xtts.{name}": weight for name, weight in content.items()} | {"dvae.codebook": torch.ones(1)}
    torch.save({"model": weights, "step": 5, "optimizer": {"state": {}}}, folder / "best_model.pth")
    for name in ("config.json", "vocab.json"):
        shutil.copy(tiny_folder / name, folder)
    opened = open_model(folder, Companions(models=tmp_path / "m"))
    assert same(opened, {name: weight.float() for name, weight in gpt_state(tiny_folder).items()})
    assert (opened.name, opened.reference) == ("GPT_XTTS-run", None)
    assert sorted(path.name for path in folder.iterdir()) == ["best_model.pth", "config.json", "vocab.json"]


def test_an_adapter_alone_is_opened_with_the_model_that_it_fits(
    tiny_folder: Path, amharic: Tokenizer, tmp_path: Path
) -> None:
    step, merged = with_adapter(tmp_path / "run", tiny_folder, amharic)
    rounded, exact = open_model(step), open_model(step, merge=True)
    assert same(exact, merged, 1e-6)
    assert same(rounded, merged, 1e-3)
    assert not same(rounded, merged, 1e-6)
    assert exact.fingerprint != rounded.fingerprint
    alone = tmp_path / "adapter"
    alone.mkdir()
    for name in (checkpoints.ADAPTER, checkpoints.ADAPTER_CONFIG, "vocab.json", "text.json"):
        shutil.copy(step / name, alone)
    opened = open_model(alone, Companions(tiny_folder))
    assert same(opened, merged, 1e-6)
    assert (opened.name, opened.tokenizer.vocabulary.hash) == ("adapter", amharic.vocabulary.hash)
    with pytest.raises(AmharicTtsError, match="which model"):
        open_model(alone)
    other = random_model.build(tmp_path / "models" / "other", sizes=random_model.RandomModelSize(layers=1))
    with pytest.raises(AmharicTtsError, match="does not fit"):
        open_model(alone, Companions(other))


@pytest.mark.slow
def test_a_moved_base_is_searched_for_among_the_models(output: Path, tiny_folder: Path, tmp_path: Path) -> None:
    run = shutil.copytree(output / RUN, tmp_path / "run")
    manifest = run / "checkpoints" / "step_6" / "checkpoint.json"
    text = manifest.read_text().replace(str(tiny_folder), "/elsewhere/tiny-random")
    manifest.write_text(text.replace('"digest"', '"_"'))
    with pytest.raises(AmharicTtsError, match="has changed since it was written"):
        open_model(manifest.parent)
    known = json.loads(text)
    known["digest"] = storage.hash_json({name: value for name, value in known.items() if name != "digest"})
    manifest.write_text(json.dumps(known))
    assert open_model(manifest.parent, Companions(models=tiny_folder.parent)).folder == tiny_folder
    assert open_model(manifest.parent, Companions(tiny_folder)).folder == tiny_folder
    with pytest.raises(AmharicTtsError, match="/elsewhere/tiny-random"):
        open_model(manifest.parent, Companions(models=tmp_path))


def test_the_embedded_voice_is_found_wherever_the_program_lies() -> None:
    elsewhere = Path("/elsewhere/utils/xtts/data/tiny")
    assert find_recorded_base(elsewhere, fingerprint(TINY_MODEL), MODELS) == TINY_MODEL
    assert find_recorded_base(elsewhere, "another", MODELS) is None


def without(*names: str) -> Callable[[Path], object]:
    def remove(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return remove


def replaced(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


def truncated(name: str) -> Callable[[Path], object]:
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size // 2)


def flip(folder: Path) -> None:
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "model.safetensors").write_bytes(content)


def other_vocabulary(folder: Path) -> None:
    content = json.loads((folder / "vocab.json").read_text())
    content["model"]["vocab"]["ቋንቋ"] = len(content["model"]["vocab"])
    (folder / "vocab.json").write_text(json.dumps(content))


def gpt_alone(folder: Path) -> None:
    content = torch.load(folder / "model.pth", weights_only=True)["model"]
    torch.save({"model": {name: content[name] for name in content if name.startswith("gpt.")}}, folder / "model.pth")


READY, STEP = "done/ready", f"{RUN}/checkpoints/step_6"


@pytest.mark.parametrize(
    ("path", "damage", "message"),
    [
        (READY, shutil.rmtree, "does not exist"),
        (READY, without("model.pth", "vocab.json"), "vocab.json, model.pth|model.pth, vocab.json"),
        (READY, truncated("model.pth"), "model.pth"),
        (READY, replaced("config.json", "{}"), "config.json"),
        (READY, replaced("text.json", "{}"), "text.json"),
        (READY, other_vocabulary, "vocabulary"),
        (READY, gpt_alone, "The size of"),
        (STEP, without("model.safetensors"), "model.safetensors"),
        (STEP, without("checkpoint.json"), "checkpoint.json"),
        (STEP, truncated("checkpoint.json"), "checkpoint.json"),
        (STEP, replaced("vocab.json", "{}"), "vocab.json"),
        (STEP, flip, "model.safetensors"),
    ],
)
def test_a_damaged_model_is_refused(output: Path, tmp_path: Path, path: str, damage: Any, message: str) -> None:
    folder = shutil.copytree(output / path, tmp_path / Path(path).name)
    damage(folder)
    with pytest.raises(AmharicTtsError, match=message) as caught:
        open_model(folder)
    assert caught.value.hint


def test_another_file_in_place_of_a_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hello.wav").touch()
    with pytest.raises(ModelFileError, match=rf"hello.wav is a file, not a folder.*{tmp_path}"):
        open_model(Path("hello.wav"))


@pytest.mark.parametrize(
    ("known", "changes", "message"),
    [
        ({"vocabulary_hash": "0" * 64}, {}, "vocabulary"),
        ({"base_fingerprint": "0" * 32}, {}, "missing or has changed"),
        ({}, {"mel_head.bias": None}, "1 missing"),
        ({}, {"text_embedding.weight": slice(-1)}, "text rows"),
        ({}, {"mel_head.bias": slice(1, None)}, "1 wrong shape"),
    ],
)
def test_a_checkpoint_of_other_parts_is_refused(
    tiny_folder: Path, amharic: Tokenizer, state: State, tmp_path: Path, known: Any, changes: Any, message: str
) -> None:
    changed = {name: state[name][part] for name, part in changes.items() if part}
    weights = {name: weight for name, weight in state.items() if name not in changes} | changed
    write(tmp_path, weights, about(tiny_folder, amharic, **known), amharic.save)
    with pytest.raises(AmharicTtsError, match=message) as caught:
        open_model(find_model(tmp_path), Companions(models=tmp_path))
    assert caught.value.hint


def test_models_are_listed_with_finished_ones_first(output: Path, tiny_folder: Path, tmp_path: Path) -> None:
    output = shutil.copytree(output, tmp_path / "output")
    (output / MODELS.name).symlink_to(tiny_folder.parent)
    (output / "damaged" / "ready").mkdir(parents=True)
    models = list_models(output)
    assert [(each.kind, each.name, each.eval_loss) for each in models[:1] + models[4:]] == [
        ("ready", "done", 2.5), ("base", "tiny-random", None), ("base", "tiny", None),
    ]  # fmt: skip
    steps = {(each.path.name, each.kind, each.eval_loss, each.is_best) for each in models[1:4]}
    assert steps == {(f"step_{step}", "checkpoint", 9 / step, step == 6) for step in (3, 6, 9)}
    assert all(each.size > 100_000 and each.when > 1e9 and each.path.is_dir() for each in models)


LISTED = (
    ListedModel("finished", Path("/mine/ready"), "ready", 0.0, 0),
    ListedModel("newest", Path("/mine/newest"), "checkpoint", 0.0, 0),
    ListedModel("best", Path("/mine/best"), "checkpoint", 0.0, 0, is_best=True),
    ListedModel("other", Path("/other/ready"), "ready", 0.0, 0),
    ListedModel("tiny", TINY_MODEL, "base", 0.0, 0),
)


@pytest.mark.parametrize(
    ("names", "selected", "preferred"),
    [
        ("finished newest best other tiny", "", "finished"),
        ("finished newest best other tiny", "newest", "finished"),  # the run has ended
        ("newest best other tiny", "tiny", "best"),
        ("newest best other tiny", "newest", "newest"),  # somebody may be listening to it
        ("other tiny", "other", "tiny"),  # not the model of another project
    ],
)
def test_the_model_of_the_open_project_is_preferred(names: str, selected: str, preferred: str) -> None:
    paths = {model.name: str(model.path) for model in LISTED}
    models = [model for model in LISTED if model.name in names.split()]
    assert preferred_model(models, Path("/mine"), paths.get(selected, "")) == paths[preferred]


@pytest.mark.parametrize(
    ("make", "name", "message"),
    [
        (Path.exists, "", "no finished model"),
        (Path.exists, "tyny", "Did you mean one of these: tiny"),
        (Path.exists, "x" * 300, "File name too long"),
        (lambda folder: (folder / "checkpoints").mkdir(), "{folder}", "no checkpoint yet"),
        (lambda folder: (folder / "notes.txt").touch(), "{folder}", "no model.pth, config.json, vocab.json"),
    ],
)
def test_a_path_without_a_model_is_refused(tmp_path: Path, make: Any, name: str, message: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    make(folder)
    with pytest.raises(AmharicTtsError, match=message) as caught:
        find_model(name.format(folder=folder), tmp_path)
    assert caught.value.hint
