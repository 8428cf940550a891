"""The Inference tab driven by a program: subtitles, many texts, comparisons, uploads, and what is refused."""

import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
import pytest
import soundfile
from gradio_client import Client, handle_file  # type: ignore[import-untyped]

from tests.ui import auditing, inside
from tests.waiting import wait_for
from utils.media import audio
from utils.media.rates import OUTPUT_RATE
from utils.studio import batch_speech, comparisons, projects, takes
from utils.studio.paths import UPLOADS, Project
from utils.ui import app
from utils.ui.tabs.inference import tab as inference

pytestmark = pytest.mark.slow

Values = dict[str, Any]  # of the form, by name

SRT = "1\n00:00:01,000 --> 00:00:03,000\nሰላም ለዓለም።\n\n2\n00:00:04,000 --> 00:00:04,500\nዛሬ ሰኞ ነው።\n"


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory, speaking_folder: Path) -> Path:
    output = tmp_path_factory.mktemp("speaking") / "output"
    for name in ("default", "second"):
        shutil.copytree(speaking_folder, output / name / "ready")
    return output


@pytest.fixture(scope="module")
def client(output: Path) -> Iterator[Client]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "TABS", (inference,))
        with inside.launched(output, 7955) as page:
            yield Client(page.url, headers=page.headers, verbose=False)


@pytest.fixture
def project(output: Path) -> Project:
    return Project(output / "default")


@pytest.fixture
def inputs(project: Project) -> Values:
    settings = {"tries": 1, "device": "cpu", "precision": "fp32"}
    return {"project": "default", "language": "en", "model": str(project.ready), "reference": "", "settings": settings}


def test_a_program_speaks(client: Client, project: Project, inputs: Values) -> None:
    endpoints = client.view_api(print_info=False, return_format="dict")["named_endpoints"]
    parameters = {parameter["parameter_name"] for parameter in endpoints["/speak"]["parameters"]}
    assert parameters >= {"text", "project", "model", "reference", "settings"}
    for _ in range(2):
        status, _, path, *_ = speak(client, inputs, "ሰላም ለዓለም።", seed=7)
        assert "s of audio" in status
    sound, rate = soundfile.read(path)
    assert rate == OUTPUT_RATE
    assert abs(sound).max() > 0.01
    first, second = takes.newest(project)[:2]
    assert first.settings["seed"] == 7
    assert np.array_equal(takes.load_audio(project, first), takes.load_audio(project, second))


def test_a_project_that_is_renamed_while_it_speaks_does_not_come_back(
    client: Client, inputs: Values, output: Path
) -> None:
    job = client.submit(text="ሰላም ለዓለም። " * 20, stream=False, api_name="/speak", **inputs | {"project": "second"})
    wait_for(lambda: any("sentences" in status for status, *_ in job.outputs()))
    projects.rename(Project(output / "second"), "third", output)
    status, *_ = job.result()
    assert "Project second was not found." in status
    assert not (output / "second").exists()
    projects.rename(Project(output / "third"), "second", output)


def speak(client: Client, inputs: Values, text: str, **settings: object) -> tuple[Any, ...]:
    values = {**inputs, "settings": inputs["settings"] | settings}
    return tuple(client.predict(text=text, stream=False, api_name="/speak", **values))


def act(blocks: gr.Blocks, panel: str, action: str, inputs: Values, *first: object, **fields: object) -> str:
    """Press a button of a panel and return what the panel shows then."""
    given = [*first, *(inputs[name] for name in ("model", "reference", "settings"))]
    return auditing.shown(blocks, panel, action, "default", given, **fields)


def uploaded(output: Path, name: str, text: str) -> dict[str, object]:
    """A file as the browser names it to handlers."""
    path = output / UPLOADS.name / name
    path.write_text(text, encoding="utf-8")
    return {"path": str(path), "meta": {"_type": "gradio.FileData"}}


def test_subtitles_are_spoken_in_their_time(blocks: gr.Blocks, output: Path, project: Project, inputs: Values) -> None:
    shown = act(blocks, "file-panel", "speak", inputs, uploaded(output, "film.srt", SRT), format=".wav")
    assert re.search(r'data-act="speak".*Working….*data-act="stop"', shown)  # the progress is below the button
    take = wait_for(lambda: next((take for take in takes.newest(project) if take.kind == "subtitles"), None), 240)
    assert take.pieces[0].start == pytest.approx(1.0)
    assert [number for number, _ in take.flags] == [2]


def test_many_lines_become_numbered_files_with_a_list(
    blocks: gr.Blocks, output: Path, project: Project, inputs: Values
) -> None:
    file = uploaded(output, "lines.txt", "ሰላም።\nΩΩ\nዛሬ ሰኞ ነው።\n")
    act(blocks, "file-panel", "speak", inputs, file, format=".ogg")
    folder = project.root / batch_speech.FOLDER
    archive = wait_for(lambda: next(iter(folder.glob("*.zip")), None), 240)
    wait_for(lambda: not [path for path in folder.iterdir() if path.is_dir()], 240)
    with zipfile.ZipFile(archive) as packed:
        assert {"00001.ogg", "00003.ogg", "list.csv"} <= set(packed.namelist())
        assert "ΩΩ" in packed.read("list.csv").decode("utf-8-sig").splitlines()[2]


def test_two_models_are_compared(blocks: gr.Blocks, project: Project, inputs: Values) -> None:
    models = {f"model-{project.root.parent / name / 'ready'}": True for name in ("default", "second")}
    act(blocks, "compare-panel", "compare", inputs, sentences="ሰላም ለዓለም።", **models)
    wait_for(lambda: next(iter(comparisons.names(project)), None), 240)
    given = [inputs["model"], "", inputs["settings"]]
    assert auditing.shown(blocks, "compare-panel", "show", "default", given).count("data-hear") == 2


def test_an_uploaded_voice_speaks_its_lines_of_a_script(
    client: Client, blocks: gr.Blocks, project: Project, inputs: Values, tmp_path: Path
) -> None:
    clip = tmp_path / "እኔ.wav"
    audio.save(clip, (np.random.default_rng(0).standard_normal(24_000 * 4) * 0.1).astype(np.float32), 24_000)
    picked = client.predict([handle_file(clip)], "default", "en", api_name="/use_voice")
    assert Path(picked).is_relative_to(project.root / "voices")
    assert "s of audio" in speak(client, inputs | {"reference": picked}, "ሰላም።")[0]
    auditing.act(blocks, "voice-panel", "save_voice", "default", [picked], voice="አበበ")
    assert "s of audio" in speak(client, inputs, "ሰላም።\nአበበ: ዛሬ ሰኞ ነው።")[0]
    first, second = takes.newest(project)[0].pieces
    assert (first.reference, Path(second.reference).parent.name) == ("", "አበበ")
    bad = tmp_path / "bad.wav"
    bad.write_text("no sound", encoding="utf-8")
    with pytest.raises(Exception, match=r"bad\.wav"):
        client.predict([handle_file(bad)], "default", "en", api_name="/use_voice")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "/nowhere"}, "does not exist"),
        ({"text": "Ω"}, "cannot read Ω"),
        ({"reference": "nobody"}, "no audio file or voice has this name"),
        ({"settings": {"tries": 0}}, "tries"),
        ({"project": "../up"}, "folder name"),
    ],
)
def test_what_cannot_be_spoken_is_refused_with_a_reason(
    client: Client, inputs: Values, change: Values, reason: str
) -> None:
    settings = inputs["settings"] | change.pop("settings", {})
    values = {"text": "ሰላም።", "stream": False, **inputs, **change, "settings": settings}
    status, *_ = client.predict(api_name="/speak", **values)
    assert 'role="alert"' in status
    assert reason in status
    assert "Traceback" not in status
