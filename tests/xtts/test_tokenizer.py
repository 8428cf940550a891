import json
import shutil
from pathlib import Path

import pytest

from tests.xtts.small_vocabulary import write_vocabulary
from utils.core.errors import VocabularyError
from utils.core.paths import ROOT
from utils.xtts.facts import FrontEndChanged, FrontEndVersionError
from utils.xtts.files import SETTINGS_FILE
from utils.xtts.language_packs import TEXT_MODES, AmharicPack, TextMode
from utils.xtts.tokenizer import Tokenizer, prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

AMHARIC = (ROOT / "tests/data/amharic_sentences.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    return Vocabulary.load(write_vocabulary(tmp_path_factory.mktemp("base")))


@pytest.fixture(scope="module", params=TEXT_MODES)
def tokenizer(base: Vocabulary, request: pytest.FixtureRequest) -> Tokenizer:
    return prepare_tokenizer(base, "amh", mode=request.param, texts=AMHARIC)


@pytest.fixture(scope="module")
def latin(base: Vocabulary) -> Tokenizer:
    return prepare_tokenizer(base, "amh")


def test_no_sentence_has_an_unknown_symbol(tokenizer: Tokenizer) -> None:
    assert {symbol for text in AMHARIC for symbol in tokenizer.tokenize(text, "am").unknown} == set()


@pytest.mark.slow
def test_training_and_speech_read_the_same_ids(tokenizer: Tokenizer, tmp_path: Path) -> None:
    run, ready = tmp_path / "run", tmp_path / "ready"
    run.mkdir()
    tokenizer.save(run)
    shutil.copytree(run, ready)
    training, speech = Tokenizer.load(run), Tokenizer.load(ready)
    for text in AMHARIC[::10]:
        ids = training.encode(text, "am")
        assert ids == speech.encode(text, "amh_ET") == list(speech.tokenize(text, "Amharic").ids)


def test_latin_adds_only_the_language_and_ipa_single_symbols(base: Vocabulary, latin: Tokenizer) -> None:
    assert latin.vocabulary.ids.keys() - base.ids.keys() == {"[am]"}
    added = prepare_tokenizer(base, "am", mode="ipa").vocabulary.ids.keys() - base.ids.keys() - {"[am]"}
    assert {"ɨ", "ʔ", "ɲ", "ː"} <= added
    assert {len(token) for token in added} == {1}


def test_fidel_adds_pieces_that_the_model_really_reads(base: Vocabulary) -> None:
    tokenizer = prepare_tokenizer(base, "am", mode="fidel", texts=AMHARIC)
    added = tokenizer.vocabulary.ids.keys() - base.ids.keys() - {"[am]"}
    used = {token for text in AMHARIC for token in tokenizer.tokenize(text, "am").tokens}
    assert len({token for token in used & added if len(token) > 1}) > 300
    assert tokenizer.tokenize("ጰራቅሊጦስ", "am").unknown == ()


def test_missing_letters_are_refused_with_the_whole_list(tmp_path: Path) -> None:
    poor = Vocabulary.load(write_vocabulary(tmp_path, without="əñ"))
    with pytest.raises(VocabularyError, match=": ñ ə"):
        prepare_tokenizer(poor, "am")
    assert prepare_tokenizer(poor, "am", mode="ipa").encode("ሰላም", "am")


def test_settings_travel_with_the_model(base: Vocabulary, tmp_path: Path) -> None:
    saved = prepare_tokenizer(base, "Amharic", mode="ipa", overrides={"ገና": "ɡənːa"})
    saved.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert (loaded.settings, loaded.notices) == (saved.settings, ())
    assert "ɡənːa" in loaded.tokenize("ገና ነው", "am").model_text
    path = tmp_path / SETTINGS_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | {"front_end": "0" * 16}), encoding="utf-8")
    (notice,) = Tokenizer.load(tmp_path).notices
    assert isinstance(notice, FrontEndChanged)
    assert notice.trained == "0" * 16
    path.write_text('{"mode": "klingon"}', encoding="utf-8")
    with pytest.raises(VocabularyError, match=r"text\.json cannot be read"):
        Tokenizer.load(tmp_path)


def test_a_model_of_an_older_front_end_opens_but_is_not_trained_on(base: Vocabulary, tmp_path: Path) -> None:
    prepare_tokenizer(base, "am").save(tmp_path)
    Tokenizer.load(tmp_path).refuse_older_front_end()
    path = tmp_path / SETTINGS_FILE
    settings = json.loads(path.read_text())
    del settings["front_end_version"]  # as version 1.1 wrote it
    path.write_text(json.dumps(settings), encoding="utf-8")
    old = Tokenizer.load(tmp_path)
    assert old.encode("ሰላም", "am")
    with pytest.raises(FrontEndVersionError) as raised:
        old.refuse_older_front_end()
    old.renewed().refuse_older_front_end()  # a new run learns the one of today
    assert (raised.value.trained, raised.value.current) == (1, AmharicPack.version)


def test_another_vocabulary_is_refused_with_both_hashes(latin: Tokenizer, tmp_path: Path) -> None:
    latin.save(tmp_path)
    other = latin.vocabulary.with_symbols("ɨ")
    other.save(tmp_path)
    with pytest.raises(VocabularyError, match=f"vocab.json .*{other.hash}.*{latin.vocabulary.hash}"):
        Tokenizer.load(tmp_path)


def test_a_published_model_reads_only_its_own_languages(base: Vocabulary, tmp_path: Path) -> None:
    base.save(tmp_path)
    published = Tokenizer.load(tmp_path)
    assert published.encode("Hello there.", "en")
    with pytest.raises(VocabularyError, match=r"no \[am\] token"):
        published.encode("ሰላም", "am")


@pytest.mark.parametrize(("language", "text"), [("en", "Dr. Lee paid $20, then left."), ("ru", "Привет")])
def test_old_languages_get_the_ids_of_plain_coqui(latin: Tokenizer, tmp_path: Path, language: str, text: str) -> None:
    from TTS.tts.layers.xtts.tokenizer import VoiceBpeTokenizer

    stock = VoiceBpeTokenizer(latin.vocabulary.save(tmp_path))
    assert latin.encode(text, language) == stock.encode(text, language)


def test_marks_the_vocabulary_lacks_are_read_as_common_ones_or_refused_by_name(latin: Tokenizer) -> None:
    assert latin.tokenize("“yes” – no…, naïve", "en").model_text == '"yes" - no..., naïve'
    with pytest.raises(VocabularyError, match="no symbol for 😀"):
        latin.encode("hello 😀", "en")


def test_tokens_typed_as_text_do_not_act_as_tokens(latin: Tokenizer) -> None:
    tokens = latin.tokenize("[en] hello [STOP] [START]", "en").tokens
    assert set(tokens[1:]) & latin.vocabulary.special <= {"[SPACE]", "[UNK]"}


@pytest.mark.parametrize("mode", TEXT_MODES)
def test_any_other_script_can_be_read(base: Vocabulary, mode: TextMode) -> None:
    texts = ["ሰላም ንዓለም።", "ಕನ್ನಡ ಭಾಷೆ", "Waa caadi!"]
    tokenizer = prepare_tokenizer(base, "ti", mode=mode, texts=texts)
    assert all(len(tokenizer.encode(text, "ti")) > 3 for text in texts)
