"""The Inference tab driven by a program: subtitles, many texts, comparisons, uploads, and what is refused."""

import shutil
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from gradio_client import Client, handle_file  # type: ignore[import-untyped]

from tests.ui import inside
from utils.config import SpeechConfig
from utils.core.paths import Project
from utils.media import audio
from utils.media.rates import OUTPUT_RATE
from utils.ui import app
from utils.ui.tabs.inference import tab as inference
from utils.workspace import batch_speech, comparisons, takes

pytestmark = pytest.mark.slow

Values = dict[str, Any]  # of the form, by name

SRT = "1\n00:00:01,000 --> 00:00:03,000\nሰላም ለዓለም።\n\n2\n00:00:04,000 --> 00:00:04,500\nዛሬ ሰኞ ነው።\n"


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.speech import amharic_model

    output = tmp_path_factory.mktemp("speaking") / "output"
    ready = amharic_model.build(tmp_path_factory.mktemp("model"))
    for name in ("default", "second"):
        shutil.copytree(ready, output / name / "ready")
    return output


@pytest.fixture(scope="module")
def client(output: Path) -> Iterator[Client]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "TABS", (inference,))
        with inside.launched(output, 7955) as page:
            yield Client(page.url, verbose=False)


@pytest.fixture
def project(output: Path) -> Project:
    return Project(output / "default")


@pytest.fixture
def inputs(project: Project) -> Values:
    settings = {"model": str(project.ready), "tries": 1, "device": "cpu", "precision": "fp32"}
    return {"project": "default", "page_language": "en", **settings}


def wait_for(find: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 240
    while not (result := find()):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return result


def test_a_program_loads_a_model_speaks_and_unloads_it(client: Client, project: Project, inputs: Values) -> None:
    endpoints = client.view_api(print_info=False, return_format="dict")["named_endpoints"]
    parameters = {parameter["parameter_name"] for parameter in endpoints["/speak"]["parameters"]}
    assert parameters >= {"text", "project", *SpeechConfig.model_fields}
    assert "In memory" in client.predict(inputs["model"], "cpu", "fp32", "en", api_name="/load_model")
    for _ in range(2):
        status, _, _, path, *_ = client.predict(text="ሰላም ለዓለም።", seed=7, api_name="/speak", **inputs)
        assert "s of audio" in status
    sound, rate = soundfile.read(path)
    assert rate == OUTPUT_RATE
    assert abs(sound).max() > 0.01
    first, second = takes.newest(project)[:2]
    assert first.settings["seed"] == 7
    assert np.array_equal(takes.load_audio(project, first), takes.load_audio(project, second))
    assert "No model is loaded" in client.predict(inputs["model"], "en", api_name="/unload_model")


def test_subtitles_are_spoken_in_their_time(client: Client, project: Project, inputs: Values, tmp_path: Path) -> None:
    path = tmp_path / "film.srt"
    path.write_text(SRT, encoding="utf-8")
    status, *_ = client.predict(file=handle_file(path), api_name="/speak_subtitles", **inputs)
    assert "s of audio" in status
    take = takes.newest(project)[0]
    assert take.kind == "subtitles"
    assert take.pieces[0].start == pytest.approx(1.0)
    assert any("Cue 2" in note for note in take.notes)


def test_many_lines_become_numbered_files_with_a_list(
    client: Client, project: Project, inputs: Values, tmp_path: Path
) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("ሰላም።\nΩΩ\nዛሬ ሰኞ ነው።\n", encoding="utf-8")
    assert "Started" in client.predict(file=handle_file(path), ending=".ogg", api_name="/speak_lines", **inputs)
    folder = project.root / batch_speech.FOLDER
    archive = wait_for(lambda: next(iter(folder.glob("*.zip")), None))
    wait_for(lambda: not [path for path in folder.iterdir() if path.is_dir()])
    with zipfile.ZipFile(archive) as packed:
        assert {"00001.ogg", "00003.ogg", "list.csv"} <= set(packed.namelist())
        assert "ΩΩ" in packed.read("list.csv").decode("utf-8-sig").splitlines()[2]


def test_two_models_are_compared_and_judged_without_names(client: Client, project: Project, inputs: Values) -> None:
    models = [str(project.root.parent / name / "ready") for name in ("default", "second")]
    client.predict(models=models, sentences="ሰላም ለዓለም።", api_name="/compare", **inputs)
    name = wait_for(lambda: next(iter(comparisons.names(project)), None))
    table = client.predict("default", name, "en", api_name="/show_comparison")
    assert table.count("<audio") == 2
    text, left_file, right_file, _ = client.predict("default", name, "Abebe", "en", api_name="/next_pair")
    assert "ሰላም" in text
    assert {"default", "second"}.isdisjoint(Path(left_file).name.split("-") + Path(right_file).name.split("-"))
    pair, *_ = comparisons.next_pair(project, name, "Abebe")
    assert pair is not None
    comparisons.save_vote(project, name, pair.token, "left", "Abebe")
    tally = client.predict("default", name, "Abebe", "en", api_name="/next_pair")[3]
    assert "(1 to 0" in tally or "(0 to 1" in tally


def test_an_uploaded_voice_is_saved_in_the_project(
    client: Client, project: Project, inputs: Values, tmp_path: Path
) -> None:
    clip = tmp_path / "እኔ.wav"
    audio.save(clip, (np.random.default_rng(0).standard_normal(24_000 * 4) * 0.1).astype(np.float32), 24_000)
    picked, _ = client.predict([handle_file(clip)], "default", "en", api_name="/use_voice")
    assert Path(picked["value"]).is_relative_to(project.root / "voices")
    assert "s of audio" in client.predict(text="ሰላም።", reference=picked["value"], api_name="/speak", **inputs)[0]
    bad = tmp_path / "bad.wav"
    bad.write_text("no sound", encoding="utf-8")
    with pytest.raises(Exception, match=r"bad\.wav"):
        client.predict([handle_file(bad)], "default", "en", api_name="/use_voice")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        *(({"model": "/nowhere"}, "does not exist"), ({"text": "Ω"}, "cannot read Ω")),
        *(({"reference": "nobody"}, "no voice"), ({"tries": 0}, "tries"), ({"project": "../up"}, "folder name")),
    ],
)
def test_what_cannot_be_spoken_is_refused_with_a_reason(
    client: Client, inputs: Values, change: Values, reason: str
) -> None:
    status, *_ = client.predict(api_name="/speak", **{"text": "ሰላም።", **inputs, **change})
    assert 'role="alert"' in status
    assert reason in status
    assert "Traceback" not in status
