"""Show each step from a written sentence to tokens: normalized, phonemes, model input."""

import argparse
from collections.abc import Mapping

from utils.amharic import explain
from utils.cli.check_text import add_vocabulary, open_tokenizer, published_vocabulary
from utils.cli.runs import add_project, chosen_project
from utils.core.languages import AMHARIC, canonical
from utils.studio.facts import InputError
from utils.xtts.language_packs import LanguagePack, TextMode, pack_for
from utils.xtts.pronunciations import overrides


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "The project's pronunciations apply. Tokens need --vocab, --model or a downloaded base model."
    parser.add_argument("text", nargs="+", help="the sentence")
    add_vocabulary(parser)
    add_project(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print each step; return 1 when the vocabulary lacks a symbol."""
    text = " ".join(arguments.text)
    own = overrides(chosen_project(arguments).pronunciations)
    if not arguments.vocab and not arguments.model:
        try:
            arguments.vocab = published_vocabulary()
        except InputError:  # none was downloaded
            pack = pack_for(arguments.language, backend=arguments.backend, overrides=own)
            _print_lines(_steps_without_vocabulary(text, pack, arguments.text_mode))
            _explain_words(text, arguments, pack)
            return 0
    tokenizer = open_tokenizer(arguments, [text]).with_pronunciations(own)
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
    _explain_words(text, arguments, tokenizer.pack(arguments.language))
    return int(bool(result.unknown))


def _steps_without_vocabulary(text: str, pack: LanguagePack, mode: TextMode) -> dict[str, str]:
    normalized = pack.normalize(text)
    phones = pack.phonemize(normalized)
    model_text = pack.render(normalized, phones, mode)
    return {"written": text, "normalised": normalized, "phonemes": phones, "read": model_text}


def _explain_words(text: str, arguments: argparse.Namespace, pack: LanguagePack) -> None:
    """Print what decided how each Amharic word is read, its other readings, and characters that were not read."""
    if canonical(arguments.language) != AMHARIC.code or arguments.backend != "rules":
        return
    explanation = explain(pack.respell(text), pack.pronounced)
    print()
    for word in explanation.words:
        print(f"{word.normalized}\t{word.phones}\t{word.latin}\t{word.gemination}")
        for phones, why in word.others:
            print(f"\tor {phones}\t\t{why}")
    for name in ("unknown", "unspoken", "dropped"):
        counts = getattr(explanation, name)
        _print_lines({name: ", ".join(f"{symbol} ({count})" for symbol, count in counts.items())})


def _print_lines(lines: Mapping[str, str]) -> None:
    for name, value in lines.items():
        if value:
            print(f"{name:<12} {value}")
