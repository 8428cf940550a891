import re
import subprocess
import sys
from typing import NoReturn

import pytest

from utils.core import languages
from utils.core.errors import TextError
from utils.xtts.language_packs import TEXT_MODES, AmharicPack, CoquiPack, LanguagePack, TextMode, pack_for


def read(pack: LanguagePack, text: str, mode: TextMode = "latin") -> str:
    normalised = pack.normalise(text)
    return pack.render(normalised, pack.phonemise(normalised), mode)


def test_every_language_has_a_pack() -> None:
    kinds = [type(pack_for(name)) for name in ("amh", "አማርኛ", "en", "zh", "ti")]
    assert kinds == [AmharicPack, AmharicPack, CoquiPack, CoquiPack, LanguagePack]


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


def test_no_cleaner_of_coqui_ever_sees_amharic(monkeypatch: pytest.MonkeyPatch) -> None:
    from TTS.tts.layers.xtts import tokenizer as coqui
    from TTS.tts.utils.text import cleaners

    def forbidden(*_arguments: object, **_named: object) -> NoReturn:
        raise AssertionError("a cleaner was run on Amharic")

    for module in (coqui, cleaners):
        for name in vars(module).copy():
            if name.endswith("_cleaners") or name.startswith(("expand_", "lowercase", "collapse_")):
                monkeypatch.setattr(module, name, forbidden)
    monkeypatch.setattr(coqui.VoiceBpeTokenizer, "preprocess_text", forbidden)

    pack = pack_for("amh_ET")
    assert all(read(pack, sample, mode) for sample in pack.samples for mode in TEXT_MODES)
    with pytest.raises(AssertionError, match="cleaner"):
        pack_for("en").normalise("Dr. Lee paid $20.")


@pytest.mark.parametrize("code", sorted({each.code for each in languages.XTTS_LANGUAGES} - {"zh-cn", "ja"}))
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
        pack_for(code).normalise(pack_for(code).samples[0])


def test_numbers_that_coqui_cannot_read_are_refused() -> None:
    with pytest.raises(TextError, match="hi"):
        pack_for("hi").normalise("12")


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


@pytest.mark.slow
def test_reading_amharic_loads_neither_torch_nor_coqui() -> None:
    script = (
        "import sys; from utils.xtts.language_packs import pack_for; p = pack_for('am');"
        "p.render(n := p.normalise(p.samples[0]), p.phonemise(n), 'latin'); p.split('ሰላም።');"
        "print(sorted({'torch', 'TTS', 'gradio', 'spacy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
