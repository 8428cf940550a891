"""Show each step from a written sentence to tokens: normalised, phonemes, model input."""

import argparse
from collections.abc import Mapping

from utils.amharic import explain
from utils.cli.check_text import add_vocabulary, open_tokenizer, published_vocabulary
from utils.core.errors import VocabularyError
from utils.core.languages import AMHARIC, canonical
from utils.xtts.language_packs import pack_for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Without --vocab, --model or a downloaded base model, no tokens are shown."
    parser.add_argument("text", nargs="+", help="the sentence")
    add_vocabulary(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print each step; return 1 when the vocabulary lacks a symbol."""
    text = " ".join(arguments.text)
    if not arguments.vocab and not arguments.model:
        try:
            arguments.vocab = published_vocabulary()
        except VocabularyError:  # none was downloaded
            _print_lines(_steps_without_vocabulary(text, arguments))
            _explain_words(text, arguments, {})
            return 0
    tokenizer = open_tokenizer(arguments, [text])
    result = tokenizer.tokenize(text, arguments.language)
    _print_lines(
        {
            "written": result.written,
            "normalised": result.normalised,
            "phonemes": result.phones,
            "read": result.model_text,
            "tokens": f"{len(result.tokens)}: {' '.join(result.tokens)}",
            "missing": " ".join(result.unknown),
        }
    )
    _explain_words(text, arguments, tokenizer.settings.overrides if tokenizer.settings else {})
    return int(bool(result.unknown))


def _steps_without_vocabulary(text: str, arguments: argparse.Namespace) -> dict[str, str]:
    pack = pack_for(arguments.language, backend=arguments.backend)
    normalised = pack.normalise(text)
    phones = pack.phonemise(normalised)
    model_text = pack.render(normalised, phones, arguments.text_mode)
    return {"written": text, "normalised": normalised, "phonemes": phones, "read": model_text}


def _explain_words(text: str, arguments: argparse.Namespace, overrides: Mapping[str, str]) -> None:
    """Print the source of gemination for each Amharic word, and characters that were not read."""
    if canonical(arguments.language) != AMHARIC.code or arguments.backend != "rules":
        return
    explanation = explain(text, overrides)
    print()
    for word in explanation.words:
        print(f"{word.normalized}\t{word.phones}\t{word.latin}\t{word.gemination}")
    for name in ("unknown", "unspoken", "dropped"):
        counts = getattr(explanation, name)
        _print_lines({name: ", ".join(f"{symbol} ({count})" for symbol, count in counts.items())})


def _print_lines(lines: Mapping[str, str]) -> None:
    for name, value in lines.items():
        if value:
            print(f"{name:<12} {value}")
