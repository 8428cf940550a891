import re
from pathlib import Path

import pytest

from utils.core import languages
from utils.core.errors import TextError

UTILS = Path(languages.__file__).parent


@pytest.mark.parametrize(
    "name",
    ["am", "AM", " am ", "amh", "amh_ET", "amh-Ethi", "am-ET", "am_ET.UTF-8", "Amharic", "AMHARIC", "አማርኛ", "amarigna"],
)
def test_every_name_of_amharic_is_one_code(name: str) -> None:
    assert languages.canonical(name) == "am"


@pytest.mark.parametrize(
    ("name", "code"),
    [("zh", "zh-cn"), ("zh-CN", "zh-cn"), ("zh_TW", "zh-cn"), ("中文", "zh-cn"), ("pt-BR", "pt"), ("Deutsch", "de")],
)
def test_the_languages_of_xtts_keep_its_codes(name: str, code: str) -> None:
    assert languages.canonical(name) == code


@pytest.mark.parametrize(
    ("name", "whisper"), [("Amharic", "am"), ("zh-cn", "zh"), ("so_SO", "so"), ("yo", "yo"), ("ti", None), ("ff", None)]
)
def test_whisper_gets_its_own_code_or_none(name: str, whisper: str | None) -> None:
    assert languages.find(name).whisper_code == whisper


def test_seventeen_languages_come_with_xtts() -> None:
    assert len({language.code for language in languages.XTTS_LANGUAGES}) == 17
    assert all(language.in_xtts for language in languages.XTTS_LANGUAGES)


def test_no_two_languages_share_a_name() -> None:
    listed = (languages.AMHARIC, *languages.XTTS_LANGUAGES, *languages.OTHER_LANGUAGES)
    spellings = [s.casefold() for each in listed for s in {each.code, each.name, each.native_name, *each.aliases}]
    assert len(set(spellings)) == len({(s, languages.canonical(s)) for s in spellings})
    assert all(languages.canonical(alias) == each.code for each in listed for alias in each.aliases)


@pytest.mark.parametrize(("code", "token"), [("ff", "[ff]"), ("swe_SE", "[swe]")])
def test_a_code_nobody_listed_is_a_language_of_its_own(code: str, token: str) -> None:
    found = languages.find(code)
    assert (found.token, found.in_xtts) == (token, False)


@pytest.mark.parametrize(
    ("name", "advice"), [("Amharik", "Amharic (am)"), ("Englsh", "English (en)"), ("", "such as am")]
)
def test_a_typing_error_is_answered_with_the_nearest_names(name: str, advice: str) -> None:
    with pytest.raises(TextError, match=re.escape(advice)) as caught:
        languages.canonical(name)
    assert isinstance(caught.value, ValueError)  # a form reports it beside its other faults


def test_other_spellings_of_amharic_live_in_one_file_only() -> None:
    spelling = re.compile(r"""["'](amh|amh_ET|am_ET|am-ET)["']""")
    files = [path for path in UTILS.rglob("*.py") if spelling.search(path.read_text(encoding="utf-8"))]
    assert [path.name for path in files] == ["languages.py"]
