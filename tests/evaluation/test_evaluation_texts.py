import pytest

from utils.evaluation.error_rates import error_rates


@pytest.mark.parametrize(
    ("text", "heard", "language", "cer", "wer"),
    [
        ("ሰላም ለዓለም።", "ሰላም ለዓለም", "am", 0.0, 0.0),
        ("ሰላም፣ ለዓለም!", "ሠላም ለአለም", "am", 0.0, 0.0),  # spelled differently, spoken alike
        ("በ2016 ተወለደ", "በሁለት ሺህ አሥራ ስድስት ተወለደ", "am", 0.0, 0.0),
        ("ሰላም ለዓለም", "ሰላምለዓለም", "am", 0.0, 1.0),  # a space is not heard, and two words have become one
        ("ሰላም ለዓለም", "ሰላም ለአለሙ", "am", 1 / 7, 0.5),
        ("ሰላም", "", "am", 1.0, 1.0),
        ("ሰላም", "ሰላም ሰላም ሰላም", "am", 2.0, 2.0),
        ("Habari, Dunia", "habari dunia", "sw", 0.0, 0.0),
        ("ሰላም ከመይ", "ሠላም ከመይ", "ti", 1 / 6, 0.5),  # only Amharic speaks these letters alike
    ],
)
def test_errors_are_counted_as_they_are_heard(text: str, heard: str, language: str, cer: float, wer: float) -> None:
    rates = error_rates(text, heard, language)
    assert rates is not None
    assert list(rates) == pytest.approx([cer, wer])


@pytest.mark.parametrize("text", ["", "!?", "😀"])
def test_nothing_to_be_said_cannot_be_misheard(text: str) -> None:
    assert error_rates(text, "ሰላም", "am") is None
