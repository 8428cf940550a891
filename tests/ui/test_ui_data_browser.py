"""The Data tab in a real browser: uploads, clips that are edited and heard, many clips, and the microphone."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.dataset.building import built, recordings
from tests.dataset.layouts import BY_NAME, TEXTS, write
from tests.ui.data_folders import many_clips, talks
from tests.ui.serving import (
    CHROMIUM,
    FLAGS,
    Seen,
    Served,
    choose_language,
    emptied,
    late_answers,
    one_tab,
    opened,
    settle,
)
from utils.core.facts import to_json
from utils.dataset import voice_recordings
from utils.dataset.facts import TextsFitOtherClips
from utils.dataset.list_check import as_listed
from utils.dataset.sources import find_recordings
from utils.dataset.store import FINDING, Store, load_dataset
from utils.studio import uploads

pytestmark = [pytest.mark.browser, pytest.mark.slow]


SCROLLED = """() => [window, document.querySelector("#clips .scroll")].map(box => box.scrollY ?? box.scrollTop)"""

CUT = """() => {
  const box = document.querySelector("#clips .scroll"), row = box.querySelector("tbody tr");
  return box.clientHeight % row.offsetHeight;
}"""

LATER = """() => {  // as if a minute had passed
  const now = performance.now.bind(performance);
  performance.now = () => now() + 60_000;
}"""

PASTE = """text => {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", text);
  document.body.dispatchEvent(new ClipboardEvent("paste", {clipboardData, bubbles: true}));
}"""


served = one_tab("data", "7950")


def test_files_are_uploaded_understood_and_removed(seen: Seen, tmp_path: Path) -> None:
    page, sources = seen.page, seen.page.locator("#sources")
    page.locator("#upload-files input[type=file]").set_input_files(talks(tmp_path, 1))
    expect(sources).to_contain_text("Added: 1 recording, 1 subtitle file.")
    expect(sources).to_contain_text("12 s · 2 subtitle lines from talk0.am.srt")
    expect(page.locator("#prepare")).to_be_visible()
    for name in ("talk0.wav", "talk0.am.srt"):
        page.get_by_role("button", name=f"Remove: {name}").click()
        expect(sources.locator("td", has_text=name).first).to_be_hidden()
    expect(page.locator("#prepare")).to_be_hidden()
    sources.locator("[name=link]").fill(str(tmp_path / "nowhere"))
    sources.locator("[data-act=add]").click()
    expect(sources).to_contain_text("does not exist")
    expect(sources.locator("[name=link]")).to_have_value(str(tmp_path / "nowhere"))  # to be corrected


def test_a_file_that_is_too_large_is_refused_beside_the_sources(seen: Seen, tmp_path: Path) -> None:
    with (tmp_path / "film.mkv").open("wb") as film:
        film.truncate(uploads.MAX_SIZE + 1)
    seen.page.locator("#upload-files input[type=file]").set_input_files(tmp_path / "film.mkv")
    expect(seen.page.locator("#sources")).to_contain_text(re.compile(r"film.mkv is larger than [\d.]+ GB\."))
    assert seen.page.get_by_test_id("toast-body").count() == 0
    assert seen.complaints == []


def test_folders_are_dropped_where_files_are(seen: Seen, served: Served, tmp_path: Path) -> None:
    page, sources = seen.page, seen.page.locator("#sources")
    talks(tmp_path / "lectures" / "first", 1)
    talks(tmp_path / "lectures" / "second", 1)
    (tmp_path / "lectures" / "cover.jpg").touch()
    drop(page, files=[str(tmp_path / "lectures")])
    expect(sources).to_contain_text("Added: 2 recordings, 2 subtitle files.")
    names = [path.name for path in uploads.list_uploads(served.project())]
    assert names == [f"lectures-{part}-talk0.{end}" for part in ("first", "second") for end in ("am.srt", "wav")]
    settle(page)
    drop(page, items=[{"mimeType": "text/uri-list", "data": "hf:google/fleurs"}])
    expect(sources).to_contain_text("Added: 1 link.")
    page.evaluate(PASTE, "hf:google/fleurs https://example.org/talk")
    expect(sources).to_contain_text("yt-dlp" if not uploads.can_download() else "Added: 2 links.")
    assert seen.complaints == []


def test_a_dropped_folder_keeps_its_files_without_a_suffix(seen: Seen, served: Served, tmp_path: Path) -> None:
    page, sources = seen.page, seen.page.locator("#sources")
    (tmp_path / "corpus").mkdir()
    BY_NAME["kaldi"].build(tmp_path / "corpus")
    write(tmp_path / "corpus", f"{'ረጅም' * 25}/s1.txt", "ሌላ ጽሑፍ")  # a name of 225 bytes
    drop(page, files=[str(tmp_path / "corpus")])
    expect(sources).to_contain_text("corpus.tar")
    (packed,) = uploads.list_uploads(served.project(), uploads.LISTS)
    scan = find_recordings([packed], language="am", workspace=tmp_path / "unpacked")
    assert {recording.path.stem: recording.text for recording in scan.recordings} == TEXTS
    assert {recording.speaker for recording in scan.recordings} == {"sp_s1", "sp_s2", "sp_s3"}
    assert [problem.path.parent.name for problem in scan.problems] == ["ረጅም" * 25]
    page.get_by_role("button", name="Remove: corpus.tar").click()
    expect(sources.locator("td", has_text="corpus.tar").first).to_be_hidden()
    files = [path for path in (tmp_path / "corpus/data/train").iterdir() if path.is_file()]
    drop(page, files=[str(path) for path in [*files, *(tmp_path / "corpus/wavs").iterdir()]])
    expect(sources).to_contain_text("files.tar")
    assert seen.complaints == []


def test_files_without_a_suffix_can_be_chosen(seen: Seen, served: Served, tmp_path: Path) -> None:
    BY_NAME["kaldi"].build(tmp_path)
    files = [path for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    with seen.page.expect_file_chooser() as chooser:
        seen.page.locator("#upload-files button").click()
    assert not chooser.value.element.get_attribute("accept")
    chooser.value.set_files(files)
    expect(seen.page.locator("#sources")).to_contain_text("wav.scp")
    folder = uploads.uploads_folder(served.project(), uploads.LISTS)
    scan = find_recordings([folder], language="am", workspace=tmp_path / "unpacked")
    assert {recording.path.stem: recording.text for recording in scan.recordings} == TEXTS
    assert seen.complaints == []


def drop(page: Page, **content: object) -> None:
    """Drag files or text from outside over the drop zone, and let go."""
    box = page.locator("#upload-files button").bounding_box()
    assert box
    devtools = page.context.new_cdp_session(page)
    data = {"items": [], "files": [], "dragOperationsMask": 1, **content}
    for kind in ("dragEnter", "dragOver", "drop"):
        event = {"type": kind, "x": box["x"] + 20, "y": box["y"] + 20, "data": data}
        devtools.send("Input.dispatchDragEvent", event)


def split(page: Page) -> None:
    """The first press shows where it would cut, the second one cuts."""
    place = page.locator("#clip-cut [name=at]")
    expect(place).to_be_hidden()
    page.locator("#clip-editor").press("s")
    expect(place).to_be_visible()
    expect(action_of(page)("undo")).not_to_contain_text("Undo split")
    action_of(page)("split").click()


def test_clips_are_edited_cut_joined_selected_and_undone(seen: Seen, served: Served, tmp_path: Path) -> None:
    page, folder = seen.page, served.project().dataset
    built(recordings(tmp_path / "in", 2, seconds=16.0), served.project())
    act = action_of(page)
    undo, count = act("undo"), len(load_dataset(folder).kept)
    page.locator("#data-review-button").click()
    page.locator("#audio-usage > summary").click()
    expect(page.locator("#audio-usage")).to_contain_text("Pauses between clips")
    expect(page.locator("#clip-editor")).to_be_hidden()
    button, text = page.locator("#clips [data-clip]").first, page.locator("#clip-editor textarea")
    shown = button.inner_text()
    button.click()
    expect(page.locator("#clip-editor h3")).to_have_text(shown)
    expect(text).to_have_value(shown)
    page.locator("#clip-explained > summary").click()
    text.fill("አዲስ ጽሑፍ ነው")
    expect(page.locator("#clip-explained")).to_contain_text("adːis")
    page.locator("#clips [data-clip]").nth(1).click()
    expect(page.get_by_text("The edited text has been saved.")).to_be_visible()
    page.locator("#clips").get_by_text("አዲስ ጽሑፍ ነው").click()
    expect(page.locator("#clip-editor h3")).to_have_text("አዲስ ጽሑፍ ነው")
    expect(undo).to_contain_text("Undo text edit")
    act("exclude").click()
    expect(page.locator("#clips")).not_to_contain_text("አዲስ ጽሑፍ ነው")
    expect(page.locator("#clip-editor h3")).not_to_have_text("አዲስ ጽሑፍ ነው")  # the next one is open
    assert len(load_dataset(folder).kept) == count - 1
    undo.click()
    expect(page.locator("#clip-editor h3")).to_have_text("አዲስ ጽሑፍ ነው")
    split(page)
    expect(undo).to_contain_text("Undo split")
    assert len(load_dataset(folder).kept) == count + 1
    act("merge_next").click()
    expect(undo).to_contain_text("Undo merge")
    page.locator("#clip-editor [name=start]").fill("0.2")
    act("trim").click()
    expect(undo).to_contain_text("Undo trim")
    for before in ("merge", "split", "text edit"):
        undo.click()
        expect(undo).to_contain_text(f"Undo {before}")
    assert len(load_dataset(folder).kept) == count
    expect(act("exclude_selected")).to_be_hidden()
    for number in range(2):
        page.locator("#clips input[data-tick]").nth(number).check()
    act("exclude_selected").click()
    expect(undo).to_contain_text("Undo exclusion")
    assert len(load_dataset(folder).kept) == count - 2
    page.reload()
    expect(undo).to_contain_text("Undo exclusion")
    # an answer that arrives between the click and its toggle event renders the details closed
    page.locator("#review-more > summary").evaluate("opener => { opener.click(); opener.parentElement.open = false }")
    page.locator("#review [data-status=all]").click()
    page.locator("#review [name=reason]").select_option(label="reviewed (2)")
    expect(page.locator("#pager")).to_contain_text("2 clips")
    assert (seen.complaints, seen.strangers) == ([], [])


def test_what_two_tabs_type_on_one_text_is_kept(seen: Seen, served: Served, tmp_path: Path) -> None:
    project, clips = served.project(), served.project().dataset
    built(recordings(tmp_path / "in", 1, seconds=16.0), project)
    mine, other = seen.page, seen.page.context.new_page()
    other.goto(served.link)
    for page in (mine, other):
        page.locator("#data-review-button").click()
        page.locator("#clips [data-clip]").first.click()
    box, theirs = mine.locator("#clip-editor textarea"), other.locator("#clip-editor textarea")
    box.fill("የእኔ ጽሑፍ")
    theirs.fill("የሌላ ጽሑፍ")
    action_of(other)("save_text").click()
    expect(mine.locator("#clip-editor .message")).to_contain_text("የሌላ ጽሑፍ")  # with the next tick
    expect(box).to_have_value("የእኔ ጽሑፍ")
    mine.get_by_role("button", name="Keep my text").click()
    expect(mine.locator("#clip-editor .message")).to_be_hidden()
    expect(theirs).to_have_value("የእኔ ጽሑፍ")  # which nobody has edited since
    assert "የእኔ ጽሑፍ" in {clip.text for clip in load_dataset(clips).clips.values()}
    theirs.fill("ሌላ ሦስተኛ")
    box.fill("አራተኛ")
    action_of(mine)("save_text").click()
    other.get_by_role("button", name="Use the other text").click()
    expect(theirs).to_have_value("አራተኛ")
    expect(other.locator("#clip-editor .message")).to_be_hidden()
    assert seen.complaints == []


def test_a_click_into_the_text_lets_a_person_type_there(seen: Seen, served: Served) -> None:
    page, text = seen.page, seen.page.locator("#clip-editor textarea")
    many_clips(served.project().dataset, 250)
    page.locator("#data-review-button").click()
    page.locator("#clips [data-clip]").first.click()
    expect(text).not_to_have_value("")
    before = text.input_value()
    text.click()
    page.keyboard.type("abc")  # by keys; another alphabet would be inserted
    page.keyboard.press("Backspace")
    expect(text).to_be_focused()
    assert sorted(text.input_value()) == sorted(f"{before}ab")


def test_a_phone_shows_the_clip_that_is_opened(seen: Seen, served: Served) -> None:
    page, opened = seen.page, seen.page.locator("#clip-editor")
    page.set_viewport_size({"width": 390, "height": 844})
    many_clips(served.project().dataset, 250)
    page.locator("#data-review-button").click()
    page.locator("#clips [data-clip]").first.click()
    expect(opened).to_be_focused()
    expect(opened.locator("[data-act=approve]")).to_be_in_viewport()


def test_examples_of_a_list_to_repair_are_heard_beside_the_clips(seen: Seen, served: Served, tmp_path: Path) -> None:
    page, project, clips = seen.page, served.project(), seen.page.locator("#clips [data-clip]")
    built(recordings(tmp_path / "in", 1, seconds=16.0), project)
    store, fitting = Store(project.dataset), next(iter(load_dataset(project.dataset).kept))
    doubted, change = as_listed(fitting, "ሌላ")
    store.set_meta(FINDING, json.dumps(to_json(TextsFitOtherClips(1, 1, "shifted", 0, 0, 0, tmp_path))))
    store.put([doubted])
    store.propose({doubted.id: change})
    page.locator("#data-review-button").click()
    example = page.locator("#clips tr:not(:has([data-clip])) .hear")
    example.click()
    expect(example).to_have_attribute("data-playing", "")
    clips.first.click()
    expect(page.locator("#clip-editor h3")).to_have_text(clips.first.inner_text())
    page.keyboard.press("ArrowDown")
    expect(page.locator("#clip-editor h3")).to_have_text(clips.nth(1).inner_text())
    assert seen.complaints == []


def action_of(page: Page) -> Callable[[str], Locator]:
    """Return what finds the button of an action in Review."""
    return lambda name: page.locator(f"#review [data-act={name}]")


def test_the_list_keeps_its_place_after_an_edit(seen: Seen, served: Served) -> None:
    page, act, clips = seen.page, action_of(seen.page), seen.page.locator("#clips [data-clip]")
    many_clips(served.project().dataset, 500)
    page.locator("#data-review-button").click()
    for name, number in (("Next", 2), ("Previous", 1), ("Next", 2)):
        page.get_by_role("button", name=name, exact=True).click()
        expect(page.locator("#pager")).to_contain_text(f"Page {number} of")
    back = page.get_by_role("button", name="Previous", exact=True)
    back.dispatch_event("click", {"detail": 2, "bubbles": True})  # of a double click on Next
    settle(page)
    expect(page.locator("#pager")).to_contain_text("Page 2 of")
    clips.nth(17).click()
    following = clips.nth(18).inner_text()
    expect(page.locator("#clip-editor h3")).to_have_text(clips.nth(17).inner_text())
    scrolled = page.evaluate(SCROLLED)
    assert any(scrolled)
    page.locator("#clip-editor textarea").fill("አዲስ ጽሑፍ ነው")
    act("save_text").click()
    expect(page.locator("#clips tr.chosen")).to_contain_text("አዲስ ጽሑፍ ነው")
    expect(clips.nth(17)).to_have_text("አዲስ ጽሑፍ ነው")
    act("exclude").click()
    expect(clips.nth(17)).to_have_text(following)
    expect(page.locator("#pager")).to_contain_text("Page 2 of")
    assert page.evaluate(SCROLLED) == scrolled


def test_the_list_ends_with_a_whole_row(seen: Seen, served: Served) -> None:
    page = seen.page
    page.set_viewport_size({"width": 1440, "height": 900})
    many_clips(served.project().dataset, 250)
    choose_language(page, "am")  # whose letters are taller
    page.locator("#data-review-button").click()
    settle(page)
    assert page.evaluate(CUT) == 0


def test_a_click_is_not_undone_by_a_late_answer_to_a_tick(seen: Seen, served: Served) -> None:
    page = seen.page
    many_clips(served.project().dataset, 500)
    page.locator("#data-review-button").click()
    expect(page.get_by_role("button", name="Next", exact=True)).to_be_visible()  # a tick may have read no clips yet
    with late_answers(page, "Page 1 of") as held:
        while not held:
            page.wait_for_timeout(100)
        page.get_by_role("button", name="Next", exact=True).click()
        expect(page.locator("#pager")).to_contain_text("Page 2 of")
        page.evaluate(LATER)
    settle(page)
    assert "Page 2 of" in page.locator("#pager").inner_text()


def test_sentences_are_read_into_the_microphone(browser: Browser, served: Served) -> None:
    flags = [*FLAGS, "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
    with_microphone = browser.browser_type.launch(executable_path=CHROMIUM, headless=True, args=flags)
    emptied(served.output)
    with opened(with_microphone, served) as seen:
        page = seen.page
        page.locator("#record button").first.click()
        sentence = page.locator("#recording textarea")
        expect(sentence).not_to_have_value("")
        first = sentence.input_value()
        page.locator("#microphone-audio button.record-button").click()
        page.wait_for_timeout(2500)
        page.locator("#microphone-audio button.stop-button").click()
        expect(page.locator("#recording")).to_contain_text("Recording saved: take-0001")
        (take,) = voice_recordings.takes(served.project().recordings)
        assert take.text == first
        assert take.seconds > 1
        page.locator("#recording [data-act=next]").click()
        expect(sentence).not_to_have_value(first)
        expect(page.locator("#recording")).to_contain_text("1 sentence,")
        page.locator("#recording [data-act=undo]").click()
        expect(sentence).to_have_value(first)
        assert voice_recordings.takes(served.project().recordings) == []
    with_microphone.close()


def test_clips_are_reviewed_with_the_keyboard_and_trimmed_on_the_waveform(
    seen: Seen, served: Served, tmp_path: Path
) -> None:
    page, folder = seen.page, served.project().dataset
    built(recordings(tmp_path / "in", 1, seconds=16.0), served.project())
    page.locator("#data-review-button").click()
    clips = page.locator("#clips [data-clip]")
    first, second, third = (clips.nth(number).inner_text() for number in range(3))
    page.locator("#clips .play").first.click()
    expect(page.locator("#clip-editor h3")).to_have_text(first)
    page.keyboard.press("ArrowDown")
    expect(page.locator("#clip-editor h3")).to_have_text(second)
    count = clips.count()
    expect(page.locator("#clip-place")).to_have_text(f"2 / {count}")
    page.keyboard.press("Enter")
    expect(page.locator("#clip-editor h3")).to_have_text(third)  # the next one to check
    expect(page.locator("#clip-place")).to_have_text(f"2 / {count - 1}")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#clip-editor h3")).to_have_text(first)
    page.locator("#review [data-status=approved]").click()
    page.locator("#clips tr", has_text="✓ approved").locator("[data-clip]").click()
    expect(page.locator("#clip-editor")).to_contain_text("✓ approved")
    page.keyboard.press("Delete")
    expect(page.locator("#clip-editor")).to_be_hidden()  # none is left in this list
    page.keyboard.press("Control+z")
    expect(page.locator("#clip-editor")).to_contain_text("✓ approved")
    end = float(page.locator("#clip-editor [name=end]").input_value())
    box = page.locator("#clip-editor .wave").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20, steps=4)
    page.mouse.up()
    expect(page.locator("#clip-editor [name=end]")).to_have_value(f"{end / 2:.2f}")
    page.locator("[data-act=trim]").click()
    expect(page.locator("[data-act=undo]")).to_contain_text("Undo trim")
    assert any(abs(clip.span.seconds - end / 2) < 0.02 for clip in load_dataset(folder).kept)
