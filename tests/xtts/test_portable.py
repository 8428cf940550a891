"""An exported voice is spoken by programs that know no Amharic, unmodified."""

import ctypes.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from rapidfuzz.distance import Levenshtein
from TTS.tts.layers.xtts.tokenizer import VoiceBpeTokenizer

from utils.amharic import from_latin
from utils.core.paths import TINY_MODEL
from utils.speech.loading import open_model
from utils.studio.publishing import PublishOptions, publish
from utils.xtts.language_packs import TextMode
from utils.xtts.portable import alias_of, portable, with_alias
from utils.xtts.tokenizer import Tokenizer, prepare_tokenizer
from utils.xtts.vocabulary import UNKNOWN, Vocabulary

SENTENCES = [
    line
    for line in Path("tests/data/amharic_sentences.txt").read_text("utf-8").splitlines()
    if not any("0" <= letter <= "z" for letter in line)
][:500]
WORD = re.compile(r"[^\W\d_]")
EXPORT = """
from utils.core.paths import TINY_MODEL
from utils.xtts.portable import portable
from utils.xtts.tokenizer import Tokenizer
print(portable(Tokenizer.load(TINY_MODEL)).vocabulary.hash)
"""


def written_by_coqui(tokenizer: Tokenizer, folder: Path) -> VoiceBpeTokenizer:
    """Return coqui's own tokenizer on the vocabulary file of an export."""
    portable(tokenizer).save(folder)
    return VoiceBpeTokenizer(str(folder / "vocab.json"))


@pytest.fixture(scope="module")
def ours() -> Tokenizer:
    return Tokenizer.load(TINY_MODEL)


@pytest.fixture(scope="module")
def coqui(ours: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> VoiceBpeTokenizer:
    return written_by_coqui(ours, tmp_path_factory.mktemp("portable"))


def test_the_alias_is_a_language_whose_cleaners_leave_our_spelling_alone(ours: Tokenizer) -> None:
    assert alias_of(ours) == "hi"


def test_our_spelling_has_the_same_ids_in_coqui(ours: Tokenizer, coqui: VoiceBpeTokenizer) -> None:
    for sentence in SENTENCES:
        read = ours.tokenize(sentence, "am")
        assert coqui.encode(read.model_text, "hi")[1:] == list(read.ids)[1:]


def test_each_process_exports_the_same_vocabulary() -> None:
    hashes = set()
    for seed in "12":  # of the order of Python's sets
        start = [sys.executable, "-c", EXPORT]
        env = {**os.environ, "PYTHONHASHSEED": seed}
        hashes.add(subprocess.run(start, env=env, check=True, capture_output=True, text=True).stdout)
    assert len(hashes) == 1


def test_our_own_ids_do_not_change(ours: Tokenizer, tmp_path: Path) -> None:
    portable(ours).save(tmp_path)
    exported = Tokenizer.load(tmp_path)
    for sentence in SENTENCES:
        assert exported.encode(sentence, "am") == ours.encode(sentence, "am")


def test_ethiopic_letters_are_read_by_coqui(ours: Tokenizer, coqui: VoiceBpeTokenizer) -> None:
    unknown = coqui.tokenizer.token_to_id(UNKNOWN)
    theirs, expected = [], []
    for sentence in SENTENCES:
        ids = coqui.encode(sentence, "hi")
        assert unknown not in ids, sentence
        theirs.append("".join(WORD.findall(from_latin(coqui.decode(ids).removeprefix("[hi]")))))
        expected.append("".join(WORD.findall(from_latin(ours.tokenize(sentence, "am").model_text))))
    assert difference(expected, theirs) < 0.04
    assert (
        difference([phones.replace("ː", "") for phones in expected], [phones.replace("ː", "") for phones in theirs])
        < 0.02
    )


def difference(expected: list[str], said: list[str]) -> float:
    return sum(map(Levenshtein.distance, expected, said)) / sum(map(len, expected))


@pytest.mark.parametrize(
    "written",
    [
        "ሰላም፡ለዓለም፡፡ ሰላም ።",
        "«ሰላም» ለዓለም… “ሰላም!”",
        "ሰላም – ለዓለም — ሰላም",
        "ሰላም/ለዓለም [ሰላም] *ለዓለም*",
        "ሰላም-ለዓለም፥ ሰላም...",
        "ሰላም ፲፪ ለዓለም ፳፭ ሰላም ፻",
        "ሰላም + ለዓለም = ሰላም§ ለዓለም",
        "ሰላም\u200b ለዓለም • ‹ሰላም›",
    ],
)
def test_marks_are_read_as_by_our_front_end(ours: Tokenizer, coqui: VoiceBpeTokenizer, written: str) -> None:
    ids = coqui.encode(written, "hi")
    assert coqui.decode(ids) == f"[hi]{ours.tokenize(written, 'am').model_text}"


def test_texts_of_other_languages_keep_their_ids(ours: Tokenizer, coqui: VoiceBpeTokenizer, tmp_path: Path) -> None:
    plain = VoiceBpeTokenizer(str(ours.vocabulary.save(tmp_path)))
    for code, text in (("en", 'A well-known voice: "yes/no", isn\'t it?'), ("fr", "Où ça ? Voilà - c'est tout !")):
        assert coqui.encode(text, code) == plain.encode(text, code)


@pytest.mark.parametrize("mode", ["latin", "ipa", "fidel"])
def test_no_mode_leaves_a_letter_unknown(tmp_path: Path, mode: TextMode) -> None:
    vocabulary = Vocabulary.load(TINY_MODEL / "vocab.json")
    tokenizer = prepare_tokenizer(vocabulary, "am", mode=mode, texts=SENTENCES)
    coqui = written_by_coqui(tokenizer, tmp_path)
    assert coqui.tokenizer.token_to_id(UNKNOWN) not in coqui.encode("ሰላም ለዓለም። እንዴት ነህ፣ ጓደኛዬ?", "hi")


def test_a_pronunciation_of_the_project_is_read(ours: Tokenizer, tmp_path: Path) -> None:
    coqui = written_by_coqui(ours.with_pronunciations({"ገና": "ɡənːa"}), tmp_path)
    assert "gənna" in coqui.decode(coqui.encode("ገና ነው።", "hi"))


def test_a_digit_is_refused_instead_of_being_misread(coqui: VoiceBpeTokenizer) -> None:
    with pytest.raises(NotImplementedError):
        coqui.encode("3 ሰዓት", "hi")


def test_the_alias_has_the_row_of_amharic(ours: Tokenizer) -> None:
    rows = torch.arange(ours.vocabulary.size * 2.0).view(-1, 2)
    state = {"text_embedding.weight": rows, "text_head.bias": rows[:, 0], "gpt.h.0.weight": rows}
    changed = with_alias(state, ours.vocabulary, "am", "hi")
    am, hi = (ours.vocabulary.ids[token] for token in ("[am]", "[hi]"))
    assert [torch.equal(changed[name][hi], state[name][am]) for name in state] == [True, True, False]
    assert not torch.equal(rows[hi], rows[am])


@pytest.mark.slow
@pytest.mark.skipif(not ctypes.util.find_library("avcodec"), reason="coqui's command needs the libraries of FFmpeg")
def test_the_tts_command_speaks_an_exported_voice(tmp_path: Path) -> None:
    voice, sound = tmp_path / "voice", tmp_path / "hello.wav"
    publish(open_model(TINY_MODEL), voice, PublishOptions(), "# A card\n")
    words = [str(Path(sys.executable).with_name("tts")), "--model_path", str(voice), "--out_path", str(sound)]
    words += ["--config_path", str(voice / "config.json"), "--speaker_wav", str(voice / "reference.wav")]
    words += ["--language_idx", "hi", "--text", "ሰላም ለዓለም።"]
    subprocess.run(words, check=True, capture_output=True, timeout=280)
    assert sound.stat().st_size > 24_000
