"""Show how a sentence is read: as written, normalised, in phonemes, in the letters of the model, in tokens."""

import argparse
from collections.abc import Mapping

from utils.cli.check_text import add_vocabulary, open_tokenizer, published_vocabulary
from utils.core.errors import VocabularyError
from utils.core.languages import AMHARIC, canonical


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the sentence, and optionally the vocabulary or model that shall read it."""
    parser.epilog = "Without --vocab or --model, and with no base model in its folder, the tokens are left out."
    parser.add_argument("text", nargs="+", help="what to read")
    add_vocabulary(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print each stage; the exit code is 1 when the vocabulary lacks a symbol."""
    text = " ".join(arguments.text)
    if not has_vocabulary(arguments):
        show(stages(text, arguments))
        explain_words(text, arguments, {})
        return 0
    tokenizer = open_tokenizer(arguments, [text])
    reading = tokenizer.tokenize(text, arguments.language)
    show(
        {
            "written": reading.written,
            "normalised": reading.normalised,
            "phonemes": reading.phones,
            "read": reading.model_text,
            "tokens": f"{len(reading.tokens)}: {' '.join(reading.tokens)}",
            "lacking": " ".join(reading.unknown),
        }
    )
    explain_words(text, arguments, tokenizer.settings.overrides if tokenizer.settings else {})
    return int(bool(reading.unknown))


def has_vocabulary(arguments: argparse.Namespace) -> bool:
    """Say whether there is any vocabulary to show tokens of."""
    if arguments.vocab or arguments.model:
        return True
    try:
        return published_vocabulary().exists()
    except VocabularyError:
        return False


def stages(text: str, arguments: argparse.Namespace) -> dict[str, str]:
    """Follow a text as far as it goes without a vocabulary."""
    from utils.xtts.language_packs import pack_for

    pack = pack_for(arguments.language, backend=arguments.backend)
    normalised = pack.normalise(text)
    phones = pack.phonemise(normalised)
    read = pack.render(normalised, phones, arguments.text_mode)
    return {"written": text, "normalised": normalised, "phonemes": phones, "read": read}


def explain_words(text: str, arguments: argparse.Namespace, overrides: Mapping[str, str]) -> None:
    """Say for each Amharic word what decided its long consonants, and what could not be read."""
    if canonical(arguments.language) != AMHARIC.code or arguments.backend != "rules":
        return
    from utils.amharic import explain

    explanation = explain(text, overrides)
    print()
    for word in explanation.words:
        print(f"{word.normalized}\t{word.phones}\t{word.latin}\t{word.gemination}")
    show({name: shown(getattr(explanation, name)) for name in ("unknown", "unspoken", "dropped")})


def shown(counts: Mapping[str, int]) -> str:
    """Write counted characters as a list."""
    return ", ".join(f"{symbol} ({count})" for symbol, count in counts.items())


def show(lines: dict[str, str]) -> None:
    """Print what there is to say, one line a stage."""
    for name, value in lines.items():
        if value:
            print(f"{name:<12} {value}")
