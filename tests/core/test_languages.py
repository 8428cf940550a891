import pytest

from utils.core import languages
from utils.core.errors import TextError


def test_every_name_of_a_language_is_one_code() -> None:
    amharic = (" AM ", "amh_ET", "amh-Ethi", "am-ET", "am_ET.UTF-8", "AMHARIC", "አማርኛ", "amarigna")
    assert {languages.canonical(name) for name in amharic} == {"am"}
    assert {languages.canonical(name) for name in ("zh", "zh-CN", "zh_TW", "中文")} == {"zh-cn"}


@pytest.mark.parametrize(("name", "whisper"), [("Amharic", "am"), ("zh-cn", "zh"), ("so_SO", "so"), ("ti", None)])
def test_whisper_gets_its_own_code_or_none(name: str, whisper: str | None) -> None:
    assert languages.find(name).whisper_code == whisper


def test_a_code_that_is_not_listed_is_a_language_of_its_own() -> None:
    language = languages.find("swe_SE")
    assert (language.token, language.in_xtts) == ("[swe]", False)


@pytest.mark.parametrize(("name", "advice"), [("Amharik", r"Amharic \(am\)"), ("", "such as Amharic")])
def test_a_typing_error_is_answered_with_the_nearest_names(name: str, advice: str) -> None:
    with pytest.raises(TextError, match=advice) as caught:
        languages.canonical(name)
    assert isinstance(caught.value, ValueError)  # a form reports it beside its other errors
