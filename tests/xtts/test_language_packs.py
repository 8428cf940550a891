import re
import sys

import pytest

from utils.core import languages
from utils.core.errors import TextError
from utils.xtts.language_packs import AmharicPack, LanguagePack, TextMode, pack_for


def read(pack: LanguagePack, text: str, mode: TextMode = "latin") -> str:
    normalized = pack.normalize(text)
    return pack.render(normalized, pack.phonemize(normalized), mode)


@pytest.mark.parametrize("mode", ["latin", "ipa"])
def test_amharic_is_read_without_ethiopic_letters(mode: TextMode) -> None:
    pack = AmharicPack()
    assert not [sample for sample in pack.samples if re.search(r"[\u1200-\u139f]", read(pack, sample, mode))]


def test_a_project_can_say_how_a_word_sounds() -> None:
    plain, own = AmharicPack(), AmharicPack(overrides={"ገና": "ɡənːa"})
    assert read(plain, "ገና ነው") != read(own, "ገና ነው")
    assert read(own, "ገና ነው").startswith("gənna")
    with pytest.raises(TextError, match="pronunciation"):
        read(AmharicPack(overrides={"ገና": "9%"}), "ገና ነው")


@pytest.mark.parametrize(
    "code", sorted({each.code for each in languages.known_languages() if each.in_xtts} - {"zh-cn", "ja"})
)
def test_xtts_languages_go_through_their_own_cleaner(code: str) -> None:
    from TTS.tts.layers.xtts.tokenizer import VoiceBpeTokenizer

    pack = pack_for(code)
    assert pack.samples
    for sample in pack.samples:
        assert read(pack, sample) == VoiceBpeTokenizer().preprocess_text(sample, code)


@pytest.mark.parametrize(("code", "package"), [("zh-cn", "pypinyin"), ("ja", "cutlet")])
def test_a_cleaner_without_its_package_says_which(code: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(TextError, match=package):
        pack_for(code).normalize(pack_for(code).samples[0])


def test_numbers_that_coqui_cannot_read_are_refused() -> None:
    with pytest.raises(TextError, match="hi"):
        pack_for("hi").normalize("12")


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("ሰላም። ደህና ነህ፧ አዎ", ["ሰላም።", "ደህና ነህ፧", "አዎ"]),
        ("你好。再见！", ["你好。", "再见！"]),
        ("3.5 is not an end\nbut a line is", ["3.5 is not an end", "but a line is"]),
    ],
)
def test_sentences_of_any_script_are_found(text: str, sentences: list[str]) -> None:
    assert pack_for("ti").split(text) == sentences
