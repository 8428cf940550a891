"""All stages at the size of a toy: from sentences to a folder that speaks, here and in plain coqui-tts."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.xtts.exporting import plain_model
from tools.tiny_voice import judges, phone_judge, report, stages
from tools.tiny_voice.__main__ import main
from tools.tiny_voice.build import STAGES
from tools.tiny_voice.continuing import continued_recipe
from tools.tiny_voice.recipe import RECIPES
from tools.tiny_voice.speakers import SPEAKERS
from tools.tiny_voice.stages import BuildContext
from tools.tiny_voice.voice import voice_folder
from utils.cli import demo
from utils.config import TrainConfig
from utils.core.paths import Project
from utils.media import audio
from utils.media.rates import RATE
from utils.speech.synthesizer import open_voice
from utils.speech.voices import ConditioningSettings
from utils.studio import runs, sample_project

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not here"),
]
LAST_EVALUATION = f"gpt, phrases: evaluation {RECIPES['toy'].gpt.phrases.updates}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[BuildContext, list[str]]:
    """The toy voice, whose build was killed once, in the middle of the first lesson."""
    messages: list[str] = []

    def kill_once(message: str) -> None:
        messages.append(message)
        if message.startswith(LAST_EVALUATION) and sum(one.startswith(LAST_EVALUATION) for one in messages) == 1:
            raise KeyboardInterrupt

    context = BuildContext(tmp_path_factory.mktemp("voice"), RECIPES["toy"], "cpu", kill_once)
    with pytest.raises(KeyboardInterrupt):
        stages.run(context, STAGES)
    stages.run(context, STAGES)
    return context, messages


@pytest.fixture
def short_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first minute of the sample instead of all three, and one epoch over it."""
    made, settings = tmp_path / "made", tmp_path / "short.yaml"
    made.mkdir()
    cues = (sample_project.DATA / sample_project.SUBTITLE_FILE).read_text(encoding="utf-8").split("\n\n")
    spoken = [block for block in cues if "00:00:" in block.split(" --> ")[0]]
    (made / sample_project.SUBTITLE_FILE).write_text("\n\n".join(spoken[:-1]), encoding="utf-8")
    audio.save(made / "sample.wav", audio.load(sample_project.DATA / sample_project.AUDIO_FILE, RATE, end=60.0), RATE)
    settings.write_text(TrainConfig(num_epochs=1, sample_texts="-").to_yaml(), encoding="utf-8")
    monkeypatch.setattr(sample_project, "DATA", made)
    monkeypatch.setattr(sample_project, "AUDIO_FILE", "sample.wav")
    monkeypatch.setattr(demo, "PRESET", settings)


def test_a_killed_lesson_goes_on_in_the_run_that_it_began(built: tuple[BuildContext, list[str]]) -> None:
    context, messages = built
    assert f"gpt, phrases: resumed {RECIPES['toy'].gpt.save} " in messages
    assert len(runs.list_runs(Project(context.folder("gpt") / "phrases"))) == 1


def test_plain_coqui_loads_the_folder_and_speaks(built: tuple[BuildContext, list[str]]) -> None:
    plain = plain_model(voice_folder(built[0].root))
    voice = plain.speaker_manager.speakers[SPEAKERS[0].name.title()]
    latents, embedding = (voice[name].float() for name in ("gpt_cond_latent", "speaker_embedding"))
    torch.manual_seed(0)
    wave = plain.inference("selam", "en", latents, embedding)["wav"]
    assert np.isfinite(wave).all()
    assert wave.size > 1000


def test_our_synthesizer_speaks_amharic_in_every_voice(built: tuple[BuildContext, list[str]], tmp_path: Path) -> None:
    model = open_voice(voice_folder(built[0].root), "cpu", "fp32")
    assert set(model.voices()) == {"default", *(speaker.name.title() for speaker in SPEAKERS)}
    speech = model.speak("ሰላም።", reference=SPEAKERS[1].name, tries=1)
    assert np.isfinite(speech.samples).all()


def test_every_stage_leaves_its_figures(built: tuple[BuildContext, list[str]]) -> None:
    written = report.report_of(built[0].root)
    assert all(f"| {stage.name} |" in written for stage in STAGES)


def test_the_command_finds_everything_done_and_shows_the_figures(
    built: tuple[BuildContext, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--recipe", "toy", "--output", str(built[0].root), "--device", "cpu"]
    assert main(["build", *where]) == 0
    told = capsys.readouterr().out
    assert all(f"{stage.name}: already done" in told for stage in STAGES)  # nothing is done twice
    assert "| nearest to its own rendering |" in told
    assert main(["build", *where, "--stages", "song"]) == 1
    assert "song" in capsys.readouterr().err


@pytest.mark.usefixtures("short_sample")
def test_the_command_teaches_the_voice_a_speaker_and_measures_what_came_of_it(
    built: tuple[BuildContext, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, figures, settings = tmp_path / "output", tmp_path / "figures.json", tmp_path / "settings.yaml"
    settings.write_text(TrainConfig(num_epochs=2, sample_texts="-").to_yaml(), encoding="utf-8")
    words = ["--sentences", "1", "--retrieved", "1", "--voices", "1", "--json", str(figures)]
    model = ["--model", str(voice_folder(built[0].root)), "--settings", str(settings)]
    assert main(["evaluate", *model, *words, "--fine-tune", str(output)]) == 0
    tuned = json.loads(figures.read_text(encoding="utf-8"))["tuned"]
    assert tuned["sentences"] == 1
    assert f"| {tuned['voice_after']} | smaller |" in capsys.readouterr().out
    [run] = runs.list_runs(Project(output / demo.NAME), "train")
    assert TrainConfig.load(run.config).num_epochs == 2
    assert TrainConfig.load(run.config).custom_model == str(voice_folder(built[0].root).resolve())


def test_a_build_continues_from_the_weights_of_an_earlier_voice(
    built: tuple[BuildContext, list[str]], tmp_path: Path
) -> None:
    context = built[0]
    base = voice_folder(context.root)
    recipe = continued_recipe(replace(RECIPES["toy"], dvae=replace(RECIPES["toy"].dvae, hidden=8, codes=48)), base)
    assert (recipe.dvae.hidden, recipe.dvae.codes) == (RECIPES["toy"].dvae.hidden, 48)
    again = BuildContext(tmp_path, recipe, "cpu", lambda _: None, base)
    stages.run(again, STAGES[:-1])
    assert open_voice(voice_folder(tmp_path), "cpu", "fp32").speak("ሰላም።", tries=1).samples.size
    assert ConditioningSettings.of(voice_folder(tmp_path)).gpt_cond_chunk_len == recipe.codes.reference_seconds
    first, continued = (stages.figures(root, "gpt")["phrases"]["first"] for root in (context.root, tmp_path))
    assert continued["loss_audio"] < first["loss_audio"]  # although the codes are other ones


def test_the_judges_measure_a_voice_beside_espeak_copies_and_chance(
    built: tuple[BuildContext, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, value in (
        (phone_judge, "UTTERANCES", 24),
        (phone_judge, "STEPS", 2),
        (judges, "JUDGED", ("abebe", "genet")),
        (judges, "PAIRS", ["ገና", "ዶሮ"]),
        (judges, "CANDIDATES", 1),
        (judges, "POOL", 60),
    ):
        monkeypatch.setattr(module, name, value)
    figures = tmp_path / "figures.json"
    words = ["--model", str(voice_folder(built[0].root)), "--sentences", "4", "--work", str(tmp_path / "judges")]
    assert main(["judge", *words, "--json", str(figures)]) == 0
    found = json.loads(figures.read_text(encoding="utf-8"))
    assert set(judges.SYSTEMS) | {"chance"} <= set(found)
    assert found["espeak"]["pitch_correlation"] == pytest.approx(1)
    assert found["mel"]["pitch_correlation"] > found["chance"]["pitch_correlation"]
    assert found["gemination"]["espeak"].keys() == {"longer_ms", "error_ms", "lengthened"}
    assert found["retrieval"]["tried"] > 0
