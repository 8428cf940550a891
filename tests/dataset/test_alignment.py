"""Texts against their sound: units, forced alignment, limits, cuts, and a build that finds wrong texts."""

import json
import re
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.dataset.building import Built, built
from tests.dataset.recordings import RATE, sample_texts, sentences
from utils.config import DatasetConfig
from utils.core.facts import Fact, Stop, StopRequested
from utils.dataset.facts import RecordingWarning, SentencesMissing, TextsNotChecked
from utils.dataset.sources import find_recordings
from utils.dataset.transcript import words_of_transcript
from utils.dataset.word_cutting import cut_words, trim, unsure_words, with_words
from utils.media.audio import Samples
from utils.recognition.aligner import Rows, SpokenWord, align, heard_in
from utils.recognition.spans import Cue, Span
from utils.recognition.thresholds import TEXTS as WHOLE_TEXTS
from utils.recognition.thresholds import WORDS, WORDS_OF_MANY, Limits, limit_between, limit_or_sure
from utils.recognition.units import Units, units_of
from utils.speech.subtitles import srt
from utils.studio.paths import Project
from utils.xtts.language_packs import pack_for
from utils.xtts.pronunciations import add_pronunciation

SETTINGS = DatasetConfig(workers=1)
MISMATCHES = {"text does not match", "word not spoken", "speech without text"}
CHOSEN = (6, 11, 13, 15, 16, 20, 22, 26, 32, 33, 40, 41, 44, 47)  # of the sample project: four words or more
TEXTS = tuple(sample_texts()[number].strip("።?") for number in CHOSEN)
LETTERS = Units(tuple("abcdefghijklmnopqrstuvwxyz"), lambda text: tuple(text.replace(" ", "")))


def heard(text: str, *, per_letter: int = 4, pause: int = 8) -> Rows:
    """Return the rows of a sound in which these letters are heard clearly."""
    frames = [0] * pause
    for letter in text:
        frames += [0] * pause if letter == " " else [ord(letter) - 96, *[0] * (per_letter - 1)]
    rows = np.full((len(frames) + pause, 27), -8.0, np.float32)
    rows[np.arange(len(rows)), [*frames, *[0] * pause]] = -0.01
    return rows


@pytest.mark.parametrize(
    ("language", "text", "units"),
    [("am", "ልጅ - ነው።", ["lɨd͡ʒ", "", "nəw"]), ("en", "Knight, ship", ["nit", "ship"]), ("ru", "да", ["da"])],
)
def test_words_become_phones_or_letters(language: str, text: str, units: Sequence[str]) -> None:
    known = units_of(language)
    words = known.words(text)
    assert [word.text for word in words] == text.split()
    assert ["".join(known.symbols[unit - 1] for unit in word.units) for word in words] == units


def test_the_pronunciations_of_a_project_count_as_soon_as_they_are_saved(tmp_path: Path) -> None:
    path = tmp_path / "pronunciations.tsv"
    assert units_of("am", path) == units_of("am", path)
    path.write_text("ሰላም\tሰለም\nUnited Nations\tዩ ኤን\n", encoding="utf-8")
    known = units_of("am", path)
    words = known.words("ሰላም ለUnited Nations፣ ነው")
    heard = [(word.text, "".join(known.symbols[unit - 1] for unit in word.units)) for word in words]
    assert heard == [("ሰላም", "sələm"), ("ለUnited Nations፣", "ləjuen"), ("ነው", "nəw")]


@pytest.mark.parametrize(
    ("text", "together"), [("ስልክ ቁጥሬ 0911 234567 ነው።", "0911 234567"), ("እስከ 9:00 ሰዓት ነው።", "9:00 ሰዓት")]
)
def test_words_that_are_read_differently_on_their_own_stay_together(text: str, together: str) -> None:
    known, pack = units_of("am"), pack_for("am")
    words = known.words(text)
    assert together in [word.text for word in words]
    whole = "".join(known.symbols[unit - 1] for word in words for unit in word.units)
    assert whole == re.sub("[ ʔː.]", "", pack.phonemize(pack.normalize(text)))


def test_a_text_that_is_far_too_long_for_its_sound_does_not_fit() -> None:
    assert align(heard("abc defg"), LETTERS.words("abc defg" * 20)) is None


def test_wrong_words_are_found_where_they_are() -> None:
    extra = align(heard("abc defg"), LETTERS.words("abc xyz defg"))
    assert extra
    assert [word.score < -4 for word in extra.words] == [False, True, False]
    left_out = align(heard("abc hij defg"), LETTERS.words("abc defg"))
    assert left_out
    assert max(left_out.gaps, key=lambda gap: gap.evidence) == left_out.gaps[1]
    assert bytes(96 + unit for unit in left_out.gaps[1].units).decode() == "hij"
    one_sound = align(heard("abc h defg"), LETTERS.words("abc defg"))
    assert one_sound
    assert max(gap.evidence for gap in one_sound.gaps) == 0


def test_a_sound_of_a_word_that_is_found_in_the_next_sentence_does_not_stretch_the_word() -> None:
    aligned = align(heard("abcde", pause=25)[:-25], LETTERS.words("abcdef"))
    there = align(np.concatenate([heard("abcde", pause=25), heard("f", pause=25)]), LETTERS.words("abcdef"))
    assert aligned
    assert there
    assert there.words[0].span.end == pytest.approx(aligned.words[0].span.end, abs=0.1)


def test_the_limit_lies_between_right_and_wrong_even_if_a_third_of_the_texts_is_wrong() -> None:
    random = np.random.default_rng(0)
    wrong = random.normal(-6, 1, 400).tolist()
    own = [*random.normal(-1, 0.5, 200), *random.normal(-6, 1, 100)]
    limit, missed = limit_between(own, wrong, WHOLE_TEXTS)
    assert -4 < limit < -2
    assert missed < 0.03
    assert limit_between(random.normal(-6, 1, 300).tolist(), wrong, WHOLE_TEXTS) == (-np.inf, 1.0)


def test_in_a_small_project_the_gap_between_right_and_wrong_words_decides() -> None:
    """Two words of twenty are wrong, which no estimate of their share tells; a bulk that reaches the limit has none."""
    random = np.random.default_rng(0)
    wrong = random.normal(-7.5, 1.5, 200).tolist()
    limit, missed = limit_between([*random.normal(-1, 0.5, 18), -6.5, -7.5], wrong, WORDS)
    assert -5 < limit < -2
    assert missed < 0.1
    assert limit_between(random.normal(-4, 2, 20).tolist(), wrong, WORDS) == (-np.inf, 1.0)
    assert not Limits(-4.0, -np.inf, np.inf, 0.0, 1.0).checks_words


def test_where_weak_signs_of_an_error_are_common_only_sure_ones_count() -> None:
    random = np.random.default_rng(0)
    wrong = random.normal(-5, 1.2, 200).tolist()
    stumbling = [*random.normal(-1, 0.5, 570), *random.uniform(-4.5, -3, 30)]
    assert limit_or_sure(stumbling, wrong, WORDS_OF_MANY, -5.0)[0] == -5.0
    assert limit_or_sure(random.normal(-4, 2, 600).tolist(), wrong, WORDS_OF_MANY, -5.0) == (-np.inf, 1.0)


def said(*words: tuple[str, float, float]) -> list[SpokenWord]:
    return [SpokenWord(text, Span(start, end), 0.0, 3) for text, start, end in words]


def test_speech_that_is_too_long_is_cut_between_words() -> None:
    groups = [said(("a", 0, 5), ("b", 5.1, 7.5), ("c", 8, 12))]
    speech = with_words([Span(0, 7), Span(7, 12.4)], groups, SETTINGS)  # cut within b by the voice detection
    clips = cut_words(groups, speech, 13, SETTINGS)
    assert [cue.text for cue in clips] == ["a b", "c"]
    assert (clips[0].span.end, clips[1].span.start) == pytest.approx((7.7, 7.85))


def test_words_that_the_voice_detection_misses_are_speech() -> None:
    words = said(("a", 1, 2), ("b", 3, 5))
    assert with_words([Span(3.2, 3.9), Span(4.2, 4.7)], [words], SETTINGS) == [Span(1, 2.05), Span(3, 5.05)]
    assert with_words([], [[SpokenWord("a", Span(1, 2), -9.0, 3)]], SETTINGS) == []


def test_speech_without_words_at_the_ends_is_cut_off() -> None:
    clips = trim(said(("a", 2, 3), ("b", 4, 5)), "A, b.", [Span(0, 1), Span(2, 3), Span(4, 5), Span(6, 7)], 8, SETTINGS)
    assert [cue.text for cue in clips] == ["", "A, b.", ""]
    assert (clips[1].span.start, clips[1].span.end) == pytest.approx((1.85, 5.15))


def made_up(count: int) -> list[str]:
    """Return sentences of eight random words of six letters."""
    letters = np.random.default_rng(1).choice(list("abcdefghijklmnop"), (count, 8, 6))
    return [" ".join(map("".join, sentence)) for sentence in letters]


def test_a_long_transcript_is_matched_to_its_sound() -> None:
    """More than fits into one alignment: anchors tie text and sound together, around what only one of them has."""
    sentences = made_up(260)
    rows = heard(" ".join([*sentences[:100], *sentences[130:]]))
    written = [*sentences[:40], *sentences[70:]]
    found, missing = words_of_transcript(rows, written, LETTERS, -4.0)
    assert sorted(sentence.text for sentence in missing) == sorted(sentences[100:130])
    assert len(found) == 200
    starts = [group[0].span.start for group in found]
    assert starts == sorted(starts)


def test_parts_of_a_transcript_in_another_order_are_found() -> None:
    sentences = made_up(30)
    found, missing = words_of_transcript(heard(" ".join(sentences)), [*sentences[20:], *sentences[:20]], LETTERS, -4.0)
    assert missing == []
    assert [word.text for group in found for word in group] == " ".join(sentences).split()


def test_the_search_for_lost_sentences_stops_when_asked() -> None:
    sentences = made_up(12)
    asked = iter([Stop.NO, Stop.NO, Stop.SAVE])  # for the window, and for the first lost sentence
    with pytest.raises(StopRequested):
        words_of_transcript(heard(" ".join(sentences[:4])), sentences[4:], LETTERS, -4.0, lambda: next(asked))
    assert next(asked, None) is None


def test_a_missing_sentence_has_the_time_after_which_it_would_be() -> None:
    rows = heard("abcd efgh ijkl mnop abdc efhg ijlk mnpo")
    _, (missing,) = words_of_transcript(
        rows, ["abcd efgh ijkl mnop", "ponm lkji hgfe dcba", "abdc efhg ijlk mnpo"], LETTERS, -4
    )
    assert missing.text == "ponm lkji hgfe dcba"
    assert missing.after == pytest.approx(2.0, abs=0.2)


def test_speech_that_the_text_lacks_is_cut_out_without_any_pause() -> None:
    groups = [said(("a", 0, 2), ("b", 2.2, 4)), said(("c", 7, 9), ("d", 9.2, 11))]
    clips = cut_words(groups, [Span(0, 11)], 11, SETTINGS)
    assert [cue.text for cue in clips] == ["a b", "", "c d"]
    assert clips[0].span.end == pytest.approx(4, abs=0.1)
    assert clips[2].span.start == pytest.approx(7, abs=0.1)


@pytest.mark.parametrize(
    ("sound", "score", "unsure"),
    [
        ("abc defghijklmno", 0.0, []),  # speech without text begins after a clear word
        ("abc defghijklmno", -3.0, ["abc"]),
        ("abc            ", -3.0, []),  # only silence follows
    ],
)
def test_an_unclear_word_beside_speech_without_text_is_unsure(sound: str, score: float, unsure: Sequence[str]) -> None:
    rows = heard(sound)
    words = [SpokenWord("abc", Span(0.16, 0.4), score, 3)]
    assert [word.text for word in unsure_words(rows, [words])] == unsure


def test_a_word_in_the_middle_of_speech_without_text_is_unsure() -> None:
    rows = heard("defghijklmnopqr abc stu vwx", pause=2)
    words = said(("abc", 1.28, 1.5), ("vwx", 1.84, 2.06))
    assert [word.text for word in unsure_words(rows, [words])] == ["abc"]


def test_looking_at_one_word_of_a_long_recording_copies_only_what_is_around_it() -> None:
    rows = np.zeros((90_000, 27), np.float16)  # an hour
    tracemalloc.start()
    heard_in(rows, Span(1800, 1801))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < rows.nbytes / 100


# --- builds ---


def sounds() -> list[Samples]:
    return [sentences()[number][1] for number in CHOSEN]


def prepared(folder: Path, settings: DatasetConfig = SETTINGS) -> tuple[Built, list[Fact]]:
    report = built(find_recordings([folder], language=settings.language), Project(folder / "project"), settings)
    return report, [fact for fact in report.facts if isinstance(fact, (TextsNotChecked, RecordingWarning))]


def test_only_right_texts_get_the_times_of_their_words(tmp_path: Path) -> None:
    texts = list(TEXTS)
    for number, sound in enumerate(sounds()):
        soundfile.write(tmp_path / f"{number:02}.wav", sound, RATE)
    texts[1], texts[6] = texts[6], texts[1]
    texts[3] = texts[3].replace("ገና", "ትልልቅ")
    (tmp_path / "damaged.wav").write_bytes(b"RIFF")
    lines = [f"{number:02}.wav|{text}|s" for number, text in enumerate(texts)]
    lines.append("damaged.wav|ሰላም|s")
    (tmp_path / "metadata.csv").write_text("\n".join(lines), encoding="utf-8")
    report, messages = prepared(tmp_path)
    clips = {int(Path(clip.source).stem): clip for clip in report.contents.clips.values()}
    assert messages == []
    assert {number: clip.reason for number, clip in clips.items() if clip.status == "excluded"} == {
        1: "text does not match",
        6: "text does not match",
    }
    assert [number for number, clip in clips.items() if clip.is_doubted] == [3]  # in so small a project
    assert (clips[3].reason, clips[3].note) == ("word not spoken", "ትልልቅ")
    words = json.loads(clips[0].words)
    assert [word for word, _, _ in words] == TEXTS[0].split()
    assert 0 < words[0][1] < words[-1][2] < clips[0].span.seconds
    assert clips[0].scores.text_match is not None


def test_a_word_is_judged_by_the_pronunciation_of_the_project(tmp_path: Path) -> None:
    """Spoken as its correction, it is accepted; without the correction it is not."""
    for number, sound in enumerate(sounds()):
        soundfile.write(tmp_path / f"{number:02}.wav", sound, RATE)
        (tmp_path / f"{number:02}.txt").write_text(TEXTS[number].replace("ተማሪ ገና", "ተማሪ ትልልቅ"), encoding="utf-8")
    without = prepared(tmp_path)[0].contents
    corrected = Project(tmp_path / "corrected")
    add_pronunciation(corrected.pronunciations, "ትልልቅ", "ገና")
    scan = find_recordings([tmp_path / f"{number:02}.wav" for number in range(len(TEXTS))], language="am")
    assert [clip.note for clip in without.clips.values() if clip.reason in MISMATCHES] == ["ትልልቅ"]
    contents = built(scan, corrected, SETTINGS, pronunciations=corrected.pronunciations).contents
    assert not [clip for clip in contents.clips.values() if clip.reason in MISMATCHES]


def test_subtitles_without_pauses_between_them_give_whole_clips(tmp_path: Path) -> None:
    ends = np.cumsum([sound.size / RATE for sound in sounds()])
    borders = [0.0, *(ends[:-1] + 0.3 * (-1) ** np.arange(len(ends) - 1)), ends[-1]]
    soundfile.write(tmp_path / "talk.wav", np.concatenate(sounds()), RATE)
    cues = [Cue(Span(*ends), text) for ends, text in zip(pairwise(borders), TEXTS, strict=True)]
    (tmp_path / "talk.srt").write_text(srt(cues), encoding="utf-8")
    report, _ = prepared(tmp_path)
    kept = sorted(report.contents.kept, key=lambda clip: clip.span.start)
    assert sum(clip.span.seconds for clip in kept) > 0.95 * ends[-1]
    assert " ".join(clip.text for clip in kept).split() == " ".join(TEXTS).split()


def test_a_long_recording_with_its_transcript_is_cut_by_its_words(tmp_path: Path) -> None:
    spoken = [np.pad(sound, (0, round(0.4 * RATE))) for sound in sounds()]
    soundfile.write(tmp_path / "talk.wav", np.concatenate(spoken), RATE)
    absent = "ይህ ዐረፍተ ነገር በፍጹም አልተነበበም ማንም አልተናገረውም።"
    written = [*TEXTS[:5], absent, *TEXTS[5:]]
    (tmp_path / "talk.txt").write_text("። ".join(written), encoding="utf-8")
    report, _ = prepared(tmp_path)
    text = " ".join(clip.text for clip in sorted(report.contents.kept, key=lambda clip: clip.span.start))
    assert text.replace("።", "").split() == " ".join(TEXTS).split()
    (missing,) = report.contents.files[str(tmp_path / "talk.wav")].warnings
    assert isinstance(missing, SentencesMissing)
    assert missing.count == 1
    assert missing.first[0].text.startswith(absent[:20])


def test_few_clips_are_kept_unchecked(tmp_path: Path) -> None:
    for number, sound in enumerate(sounds()[:2]):
        soundfile.write(tmp_path / f"{number}.wav", sound, RATE)
        (tmp_path / f"{number}.txt").write_text(TEXTS[1 - number], encoding="utf-8")
    report, messages = prepared(tmp_path)
    assert len(report.contents.kept) == 2
    assert messages == [TextsNotChecked("too_few", 2)]


def test_noise_with_texts_is_not_judged(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for number, text in enumerate(TEXTS):
        soundfile.write(tmp_path / f"{number}.wav", random.standard_normal(2 * RATE) * 0.1, RATE)
        (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
    settings = SETTINGS.model_copy(update={"segmenter": "energy", "min_snr_db": -20.0})
    report, messages = prepared(tmp_path, settings)
    assert len(report.contents.kept) == len(TEXTS)
    assert [fact.why for fact in messages if isinstance(fact, TextsNotChecked)] == ["no_better"]
