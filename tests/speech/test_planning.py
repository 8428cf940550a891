from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.xtts.small_vocabulary import write_vocabulary
from utils.config import SpeechConfig
from utils.core.errors import TextError
from utils.speech.planning import find_unspeakable, plan, split_speakers, unknown_speakers
from utils.speech.types import Sentence
from utils.xtts.language_packs import AmharicPack
from utils.xtts.tokenizer import Tokenizer, prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

LIMIT = AmharicPack().token_limit
LONG = "ልጆቹ ሜዳ ላይ ኳስ ይጫወታሉ፣ " * 20 + "ከዚያም ወደ ቤት ሄዱ።"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return prepare_tokenizer(Vocabulary.load(write_vocabulary(tmp_path_factory.mktemp("base"))), "am")


def sentences_of(text: str, tokenizer: Tokenizer, language: str = "am", **settings: Any) -> list[Sentence]:
    return list(plan(text, tokenizer, SpeechConfig(language=language, **settings)).sentences)


def test_a_script_becomes_sentences_that_know_their_line(tokenizer: Tokenizer) -> None:
    sentences = sentences_of(f"ሰላም። ደህና ነህ?\n\n{LONG}", tokenizer)
    assert [(each.text, each.paragraph, each.line) for each in sentences[:2]] == [("ሰላም።", 0, 1), ("ደህና ነህ?", 0, 1)]
    assert {each.paragraph for each in sentences[2:]} == {1}
    assert {each.line for each in sentences[2:]} == {3}
    assert " ".join(each.text for each in sentences[2:]).split() == LONG.split()
    assert len(sentences) > 4


@pytest.mark.parametrize(
    ("text", "pauses"),
    [
        ("ሰላም? ሰላም! ሰላም፧ ሰላም.", [0.35, 0.35, 0.35, 0]),
        ("«ሰላም።» ሰላም።", [0.35, 0]),
        ("ሰላም…\nሰላም", [0.455, 0]),
        ("ሰላም፤\nሰላም፣\nሰላም፦\nሰላም\nሰላም —\nሰላም", [0.21, 0.14, 0.21, 0.35, 0.21, 0]),
        ("ሰላም።\n \n* * *\n\nሰላም።", [0.8, 0]),
        ("# ርዕስ\nሰላም።\n\nሰላም።\n## ርዕስ ሁለት ##\n\nሰላም።", [1.6, 0.8, 1.6, 1.6, 0]),
    ],
)
def test_each_mark_has_its_pause(tokenizer: Tokenizer, text: str, pauses: list[float]) -> None:
    assert [each.pause for each in sentences_of(text, tokenizer)] == pytest.approx(pauses)


@pytest.mark.parametrize(("text", "share"), [(LONG, 0.4), (LONG.replace("፣", ""), 0.1)])
def test_a_cut_inside_a_sentence_gets_a_short_pause(tokenizer: Tokenizer, text: str, share: float) -> None:
    sentences = sentences_of(text, tokenizer, sentence_pause=1.0, paragraph_pause=5.0)
    assert [each.pause for each in sentences] == [share] * (len(sentences) - 1) + [0.0]


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("### The end ###", "The end"),
        ("ምዕራፍ አስራ አንድ፡ ጉዞው", "ምዕራፍ አስራ አንድ፡ ጉዞው"),
        ("CHAPTER IV. The river", "CHAPTER IV. The river"),
        ("ምዕራፍ አንድ ላይ እንደተባለው ነው።", None),
        ("#ሰላም", None),
    ],
)
def test_headings_open_chapters(tokenizer: Tokenizer, line: str, title: str | None) -> None:
    sentences = sentences_of(f"ሰላም።\n{line}\nሰላም ለዓለም።", tokenizer)
    assert [each.chapter for each in sentences if each.chapter] == ([title] if title else [])
    assert sentences[0].paragraph != sentences[-1].paragraph or title is None


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("ልጆቹ ሜዳ ላይ ኳስ ሲጫወቱ ዋሉ፤ ከዚያም ወደ ቤት\nሄደው እራት በሉና ተኙ። በማግስቱም እንደገና ወደ ሜዳ\nሄዱ። ደህና።", [1, 2, 2, 3, 3]),
        ("ሰላም ለዓለም\nሰላም ለሀገር", [1, 2]),
        ("- አንድ ዳቦ\n- ሁለት ወተት", [1, 2]),
    ],
)
def test_wrapped_lines_are_joined(tokenizer: Tokenizer, text: str, lines: list[int]) -> None:
    assert [each.line for each in sentences_of(text, tokenizer)] == lines


@pytest.mark.parametrize(
    ("text", "language", "complaint"),
    [
        ("", "am", "no letters or digits"),
        ("\ufeff\u200b\u202e\x00", "am", "no letters or digits"),
        ("😀 👍🏽 👨‍👩‍👧", "en", "no letters or digits"),
        ("ሰላም።\n\n你好", "am", r"cannot read 你 \(line 3\), 好 \(line 3\)\. Write it in Amharic letters"),
        ("ሰላም", "sw", r"no \[sw\] token"),
    ],
)
def test_unspeakable_text_is_refused(tokenizer: Tokenizer, text: str, language: str, complaint: str) -> None:
    with pytest.raises(TextError, match=complaint) as caught:
        sentences_of(text, tokenizer, language)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "language", "spoken", "left_out"),
    [
        ("ሰላም።\n😀\nደህና።", "am", ["ሰላም።", "ደህና።"], ["😀 (line 2)"]),
        ("Hello 😀 there ❤️.", "en", ["Hello there."], ["😀 (line 1)", "❤ (line 1)"]),
        ("ሰላም።\n\n...\n\nደህና።", "am", ["ሰላም።", "ደህና።"], ["... (line 3)"]),
        ("ሰላም \ud800።", "am", ["ሰላም።"], ["\N{REPLACEMENT CHARACTER} (line 1)"]),
        ("100°", "am", ["100°"], []),
        # control characters
        ("\ufeff\u202eሰ\u200bላ\u200eም\u202c", "am", ["ሰላም"], []),
        ("ሰላም\x00\x07ነው", "am", ["ሰላም  ነው"], []),
        ("ሰላም\rነው", "am", ["ሰላም", "ነው"], []),
    ],
)
def test_symbols_without_a_sound_are_left_out_with_a_note(
    tokenizer: Tokenizer, text: str, language: str, spoken: list[str], left_out: list[str]
) -> None:
    sentences, notes = plan(text, tokenizer, SpeechConfig(language=language))
    assert [each.text for each in sentences] == spoken
    assert bool(notes) == bool(left_out)
    assert all(any(sign in str(note) for note in notes) for sign in left_out)
    assert not any(problem.refused for problem in find_unspeakable(text, tokenizer, language))


HUGE = {
    "a word": "ሰላም" * 33_000,
    "no mark": "ልጆቹ ሜዳ ላይ ኳስ ይጫወታሉ " * 4_500,
    "commas": "ሰላም፣" * 20_000,
    "paragraphs": "ልጆቹ ኳስ ይጫወታሉ።\n\n" * 5_500,
    "figures": "9" * 5_000,
}


@pytest.mark.parametrize("name", HUGE)
def test_a_text_becomes_sentences_that_fit_the_model(tokenizer: Tokenizer, name: str) -> None:
    text = HUGE[name][:12_000]
    sentences = sentences_of(text, tokenizer)
    assert max(len(each.tokenized.ids) for each in sentences) <= LIMIT
    assert "".join(each.text for each in sentences).replace(" ", "") == "".join(text.split())
    inside = [len(each.tokenized.ids) for each in sentences[:-1] if each.pause <= 0.14]
    assert min(inside, default=LIMIT) > LIMIT / 6  # the model speaks very short sentences badly


@given(text=st.text(st.characters(codec=None, exclude_categories=[]), max_size=80))
@settings(max_examples=60)
def test_any_string_is_spoken_or_refused_in_a_sentence(tokenizer: Tokenizer, text: str) -> None:
    problems = find_unspeakable(text, tokenizer, "am")
    if any(problem.refused for problem in problems):
        with pytest.raises(TextError, match="cannot read"):
            plan(text, tokenizer, SpeechConfig())
        return
    sentences, notes = plan(f"{text}\n\nሰላም።", tokenizer, SpeechConfig())
    assert bool(notes) == bool(problems)
    assert all(each.text and not each.tokenized.unknown for each in sentences)


def test_a_script_is_split_at_the_names_of_known_voices() -> None:
    voices = {"አበበ": "a.wav", "Sara": "s.wav"}
    text = "መግቢያ።\nአበበ: ሰላም!\nእንዴት ነህ?\nsara : ደህና።\nሰዓት: ሦስት።"
    assert split_speakers(text, voices) == [
        ("", "መግቢያ።"),
        ("a.wav", " ሰላም!\nእንዴት ነህ?"),
        ("s.wav", " ደህና።\nሰዓት: ሦስት።"),
    ]
    assert split_speakers("ሰላም: x", {}) == [("", "ሰላም: x")]


def test_an_unknown_speaker_of_a_script_is_noticed() -> None:
    script = "ሊንዳ: ሰላም።\nአበበ: ደህና ነሽ?\nሊንዳ: ደህና።"
    assert unknown_speakers(script, ["ሊንዳ", "kebede"]) == ["አበበ"]
    assert unknown_speakers(script, []) == ["ሊንዳ", "አበበ"]
    assert unknown_speakers("ማስታወሻ: ነገ እንሄዳለን። 3:30 ላይ።\nhttps://example.org", []) == []
