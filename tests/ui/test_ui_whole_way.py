"""The whole way in a real browser: recordings, a dataset, training of the tiny base, a voice, and its sound on disk."""

import re
from pathlib import Path

import pytest
import soundfile
from playwright.sync_api import Locator, Page, expect

from tests.dataset.recordings import sample_texts
from tests.ui.serving import Seen, Served, settle
from utils.config import TrainConfig
from utils.core.events import read_events
from utils.media.rates import OUTPUT_RATE
from utils.studio import runs, sample_project, takes
from utils.studio.paths import CONFIGS, LICENCE_CONSENT, Project
from utils.studio.runs import Run
from utils.ui.i18n import t
from utils.xtts.hub import licence_accepted

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

NAME = "የአበበ ድምፅ"
BOXES = ("enable_grad_checkpoint", "enable_sdpa", "enable_mixed_precision")
QUICK = {"num_epochs": "1000", "batch_size": "2", "save_step": "4", "eval_step": "4", "sample_texts": "ሰላም"}
PATIENCE = 240_000  # milliseconds; the child loads torch, and other programs share the machine
REACHED = """minimum => {
  const match = document.querySelector("#training-run-facts")?.innerText.match(/Step (\\d+) of/);
  return match && Number(match[1]) >= minimum ? Number(match[1]) : 0;
}"""

COUNT = """() => {
  const panel = [...document.querySelectorAll("[role=tabpanel]")].find(panel => panel.checkVisibility());
  const controls = [...panel.querySelectorAll("input, textarea, select, button")];
  return [controls.filter(control => control.checkVisibility()).length, document.documentElement.scrollHeight];
}"""
LOADED = re.compile(r"0:0[1-9]")  # the duration; the player undoes a click on Play before it has decoded the sound
WAY = (  # from the dataset to the voice: what is clicked, and where its result shows
    ("#next-training button", "#preset-about", "Recommended"),
    ("#train", "#training-run-facts", "finished"),
    ("#training-runs .next", "#speak", "Speak"),
    ("#speak", "#take-sound", LOADED),
    ("#take-sound button[aria-label=Play]", "#takes", "Model"),
)


def click_through(page: Page, *steps: tuple[str, str, str | re.Pattern[str]]) -> int:
    """Click each step when the one before has its result; return the number of clicks."""
    for selector, result, text in steps:
        page.locator(selector).click()
        expect(page.locator(result)).to_contain_text(text, timeout=PATIENCE)
    return len(steps)


def test_an_empty_project_fits_on_the_screen(seen: Seen) -> None:
    page = seen.page
    page.set_viewport_size({"width": 1440, "height": 900})
    for tab in ("data", "training", "inference"):
        open_tab(page, tab)
        settle(page)
        controls, height = page.evaluate(COUNT)
        assert 0 < controls <= 9, tab
        assert height <= 900, tab


def test_advanced_is_remembered(seen: Seen) -> None:
    page = seen.page
    open_tab(page, "training")
    field = page.locator("#training-weight_decay")
    expect(field).to_be_hidden()
    page.locator("#training-advanced input").check()
    expect(field).to_be_visible()
    settle(page)
    page.reload()
    open_tab(page, "training")
    expect(field).to_be_visible()
    page.locator("#training-tab .sheet [data-close]").click()
    settle(page)


@pytest.mark.long
def test_an_own_recording_with_subtitles_is_heard_within_nine_clicks(seen: Seen, served: Served) -> None:
    page = seen.page
    page.set_default_timeout(60_000)
    files = [sample_project.DATA / name for name in (sample_project.AUDIO_FILE, sample_project.SUBTITLE_FILE)]
    page.locator("#upload-files input[type=file]").set_input_files(files)  # a click, and the dialog of the system
    expect(page.locator("#sources")).to_contain_text("subtitle lines")
    clicks = 1 + click_through(page, ("#prepare", "#data-run-facts", "finished"), *WAY)
    assert clicks <= 9
    assert takes.names(served.project())


def open_tab(page: Page, name: str) -> None:
    page.locator(f"#steps [data-open={name}-tab]").click()


def open_training(page: Page) -> None:
    open_tab(page, "training")
    page.locator("#training-advanced input").check()
    expect(page.locator("#preset")).to_be_visible()
    settle(page)  # the settings of the project come first


def field(page: Page, name: str) -> Locator:
    """Find it by its id: looking for labels among so many widgets takes seconds."""
    return page.locator(f"#training-{name} [name]")


def facts(page: Page) -> Locator:
    return page.locator("#training-run-facts")


def choose_tiny(page: Page, **changes: str) -> None:
    """Choose the tiny model, whose preset this computer without a GPU starts with, and change some fields."""
    field(page, "version").select_option("tiny")
    expect(page.locator("#preset-about")).to_contain_text("tiny_cpu.yaml")
    preset = TrainConfig.load(CONFIGS / "tiny_cpu.yaml")
    expect(field(page, "num_epochs")).to_have_value(str(preset.num_epochs))
    for name, value in changes.items():
        field(page, name).fill(value)


def wait_for_step(page: Page, minimum: int) -> int:
    """Wait until an update is shown, and return which one it is by then."""
    return int(page.wait_for_function(REACHED, arg=minimum, timeout=PATIENCE).json_value())


def test_recordings_become_a_voice_that_speaks(seen: Seen, served: Served) -> None:
    page, project = seen.page, served.project(NAME)
    page.set_default_timeout(60_000)  # the training shares the processor with the browser
    expect.set_options(timeout=60_000)
    make_project(page, project)
    make_dataset(page)
    run = train(page, project)
    watch(page)
    reopen(seen, served, run)
    stop_and_resume(page, run)
    optimise(page, project)
    speak(page)
    correct(page)
    delete_and_restore(page, project)
    assert [made.name for made in runs.list_runs(project) if made.name.endswith("-train")] == [run.name]
    assert seen.complaints == []
    assert seen.strangers == []


def make_project(page: Page, project: Project) -> None:
    page.locator("#manage-projects").click()
    page.locator("#projects-panel [name=name]").fill(NAME)
    page.locator("#projects-panel [data-act=new]").click()
    expect(page.get_by_text(f"Project {NAME}")).to_be_visible()
    page.locator("#manage-projects").click()
    assert project.root.is_dir()


def make_dataset(page: Page) -> None:
    """The media and its subtitles become clips with text."""
    expect(page.locator("#sources [data-act=sample]")).to_be_visible()
    expect(page.locator("#prepare")).to_be_hidden()
    files = [sample_project.DATA / name for name in (sample_project.AUDIO_FILE, sample_project.SUBTITLE_FILE)]
    page.locator("#upload-files input[type=file]").set_input_files(files)
    for file in files:
        expect(page.locator("#sources")).to_contain_text(file.name)
    page.locator("#prepare").click()
    expect(page.locator("#data-run-facts")).to_contain_text("finished", timeout=PATIENCE)
    page.locator("#data-review-button").click()
    expect(page.locator("#clips")).to_contain_text(sample_texts()[36])
    expect(page.locator("#steps")).to_contain_text(" clips")


def train(page: Page, project: Project) -> Run:
    """Three boxes are ticked, some settings changed, and Train is clicked twice."""
    open_training(page)
    field(page, "version").select_option("v2.0.2")
    if not licence_accepted(LICENCE_CONSENT):  # else nobody is asked again
        expect(page.locator("#licence")).to_be_visible()
        expect(page.locator("#train")).to_be_hidden()
        expect(page.locator("#train-reason")).to_contain_text("licence")
    choose_tiny(page, **QUICK)
    for box in BOXES:
        field(page, box).check()
    field(page, "batch_size").fill("0")
    expect(page.locator("#training-batch_size.invalid")).to_be_visible()
    expect(page.locator("#train-errors")).to_contain_text("(batch_size)")
    expect(page.locator("#disk-forecast")).to_be_hidden()  # nothing is calculated
    field(page, "batch_size").fill(QUICK["batch_size"])
    expect(page.locator(".invalid")).to_have_count(0)
    page.locator("#training-tab .sheet [data-close]").click()
    page.locator("#more-checks > summary").click()
    page.locator("#checks [data-act=show_command]").click()
    expect(page.locator("#checks pre")).to_contain_text("--num-epochs 1000 ")
    expect(page.locator("#licence")).to_be_hidden()
    page.locator("#train").dblclick()
    expect(facts(page)).to_contain_text("running", timeout=PATIENCE)
    expect(page.locator("#train")).to_have_text("Add to queue")
    expect(page.locator("#train-reason")).to_contain_text("is running")
    run = next(run for run in runs.list_runs(project) if run.name.endswith("-train"))
    values = TrainConfig.load(run.config).model_dump()
    assert {box: values[box] for box in BOXES} == dict.fromkeys(BOXES, True)
    return run


def watch(page: Page) -> None:
    """The curve moves, each switch says what it did, and a sentence can be heard."""
    step = wait_for_step(page, 2)
    curve = page.locator("#training-chart .curve").first
    drawn = str(curve.get_attribute("d"))
    wait_for_step(page, step + 1)
    expect(curve).not_to_have_attribute("d", drawn)
    assert page.locator("#training-chart svg").evaluate("svg => svg.clientHeight") > 100
    expect(page.locator(".setting .effect").first).to_contain_text(t("training.changed_in_run", count=12))
    expect(page.locator("#samples")).to_contain_text(t("training.active_optimizations"))
    sample = page.locator("#samples [data-hear]").first
    expect(sample).to_be_visible(timeout=PATIENCE)
    kind = sample.evaluate("async (sound) => (await fetch(sound.dataset.hear)).headers.get('content-type')")
    assert kind.startswith("audio/")


def reopen(seen: Seen, served: Served, run: Run) -> None:
    """The run and the form are still there after a reload, in a second tab, and when the page is restarted."""
    page, pid = seen.page, run.current_state().pid
    page.reload()
    expect(facts(page)).to_contain_text("running")
    expect(field(page, "num_epochs")).to_have_value("1000")
    second = page.context.new_page()
    second.goto(seen.origin)
    expect(facts(second)).to_contain_text("running")  # the tab that was open last is open again
    expect(second.locator("#training-runs [data-act=stop_now]")).to_be_visible()
    expect(second.locator("#training-runs [data-act=delete]")).to_be_hidden()
    second.reload()
    open_tab(second, "inference")  # at once: the tab that was open must not take its place
    settle(second)
    expect(second.locator("#speech-text")).to_be_visible()
    open_tab(second, "training")
    second.wait_for_function("localStorage.getItem('amharic-tab') === 'training'")
    second.close()
    assert seen.complaints == []
    served.restart(page)
    expect(facts(page)).to_contain_text("running")
    expect(field(page, "num_epochs")).to_have_value("1000")
    wait_for_step(page, wait_for_step(page, 1) + 1)
    assert run.current_state().pid == pid
    seen.complaints.clear()  # of requests while there was no page


def stop_and_resume(page: Page, run: Run) -> None:
    """What was learnt is saved, and the same run goes on from there."""
    page.locator("#training-runs [data-act=stop_and_save]").click()
    expect(facts(page)).to_contain_text("Stopped and saved.", timeout=PATIENCE)
    stopped = wait_for_step(page, 1)
    page.locator("#training-runs [data-act=resume]").click()
    expect(facts(page)).to_contain_text("running", timeout=PATIENCE)
    wait_for_step(page, stopped + 1)
    resumed = [event["step"] for event in read_events(run.events).events if event["kind"] == "resumed"]
    page.locator("#training-log summary").click()
    expect(page.locator("#training-log pre")).to_contain_text("audio loss")
    assert resumed == [stopped]  # the page shows the end of the log only, which this leaves within seconds
    page.locator("#training-runs [data-act=stop_now]").click()
    expect(page.locator("#question")).to_contain_text("steps are lost")
    page.locator("#confirm").click()
    expect(facts(page)).to_contain_text("stopped", timeout=PATIENCE)


def optimise(page: Page, project: Project) -> None:
    """Step 2.5: a checkpoint becomes the finished model of the project."""
    page.locator("#export > summary").click()
    page.locator("#training-runs [name=half]").check()
    page.locator("#training-runs [data-act=export]").click()
    expect(page.locator("#training-runs .message.success")).to_contain_text("ready", timeout=PATIENCE)
    assert (project.ready / "model.pth").is_file()
    assert '"precision": "half"' in (project.ready / "about.json").read_text(encoding="utf-8")


def speak(page: Page) -> None:
    """Step 3: the finished model is selected by itself and speaks; its sound is downloaded."""
    page.locator("#training-runs .next").click()
    page.locator("#inference-advanced input").check()
    expect(page.locator("#model input")).to_have_value(re.compile(f"{NAME} · finished model"))
    page.locator("#speech-tries-input").fill("1")  # after so few updates it never ends by itself
    page.locator("#inference-tab .sheet [data-close]").click()
    page.locator("#model-details > summary").click()
    page.locator("#model-panel [data-act=load]").click()
    expect(page.locator("#model-card")).to_contain_text("loaded in", timeout=PATIENCE)
    page.locator("#speech-text textarea").fill("ሰላም ለዓለም። ዛሬ ሰኞ ነው።")
    page.locator("#speak").click()
    expect(page.locator("#speak-status")).to_contain_text("s of audio", timeout=PATIENCE)
    expect(page.locator("#take-sound").get_by_test_id("waveform-Result")).to_be_visible()
    sound, rate = soundfile.read(download(page, "WAV"))
    assert rate == OUTPUT_RATE
    assert 0.1 < sound.size / rate < 60
    assert abs(sound).max() > 0.01


def download(page: Page, kind: str) -> Path:
    if not page.locator("#take-downloads").get_attribute("open"):
        page.locator("#take-downloads > summary").click()
    with page.expect_download() as waiting:
        page.locator("#take-downloads .downloads").get_by_text(kind, exact=True).click()
    return Path(waiting.value.path())


def correct(page: Page) -> None:
    """One sentence of the take is spoken again with another text."""
    page.locator("#takes [data-act=sentence]").first.click()
    text = page.locator("#takes [name=words]")
    expect(text).to_have_value("ሰላም ለዓለም።")
    text.fill("ሰላም ለሁሉም ሰው።")
    page.locator("#takes .line-editor [data-act=again]").click()
    expect(page.locator("#takes [data-act=accept]")).to_be_enabled(timeout=PATIENCE)
    page.locator("#takes [data-act=accept]").click()
    expect(page.locator("#takes .sentences li").first).to_contain_text("ሰላም ለሁሉም ሰው።")
    assert "ሰላም ለሁሉም ሰው" in download(page, "SRT").read_text(encoding="utf-8")
    assert download(page, "MP3").stat().st_size > 1000  # made when it is asked for


def delete_and_restore(page: Page, project: Project) -> None:
    page.reload()
    page.locator("#history summary").click()
    expect(page.locator("#takes [name=take]")).to_contain_text("ሰላም ለሁሉም ሰው")
    expect(page.locator("#take-sound").get_by_test_id("waveform-Result")).to_be_visible()
    page.locator("#takes [data-act=reuse]").click()
    expect(page.locator("#speech-text textarea")).to_have_value("ሰላም ለሁሉም ሰው። ዛሬ ሰኞ ነው።")
    (name,) = takes.names(project)
    page.locator("#takes [data-act=delete]").click()
    expect(page.locator("#takes-status")).to_contain_text("deleted")
    assert takes.names(project) == []
    page.locator("#takes [data-act=undo]").click()
    expect(page.locator("#takes-status")).to_contain_text("restored")
    assert takes.names(project) == [name]
