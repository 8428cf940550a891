"""Speak a text, a file, or subtitles in their time, into a sound file or a pipe.

speak "ሰላም ለዓለም" --reference me.wav --out hello.wav
speak --file book.txt --out book.mp3 --captions book.srt
speak --srt film.srt --out film.wav
speak "ሰላም" --stream | aplay
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from utils.config import SpeechConfig
from utils.config.flags import EXIT_INTERRUPTED, add_flags, read_flags
from utils.core.errors import TextError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from utils.media.audio import Samples
    from utils.speech.synthesizer import Synthesizer
    from utils.speech.types import Speech, Spoken


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take what to say, where to write it, and how to say it."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    source = parser.add_mutually_exclusive_group()
    source.add_argument("text", nargs="?", default="", help="what to say; - reads it from the standard input")
    source.add_argument("--file", type=Path, metavar="TEXT", help="a text file of any length, in UTF-8")
    source.add_argument("--srt", type=Path, metavar="SUBTITLES", help="subtitles, each spoken in its time")
    parser.add_argument("--out", type=Path, default=Path("speech.wav"), help="sound file (default: speech.wav)")
    parser.add_argument("--captions", type=Path, metavar="FILE", help="time of each sentence, as .srt or .vtt")
    parser.add_argument("--chapters", type=Path, metavar="FILE", help="time of each heading, as .txt or .json")
    parser.add_argument("--stream", action="store_true", help="write WAV to the standard output while speaking")
    parser.add_argument("--raw", action="store_true", help="with --stream: samples of 16 bits at 24000 Hz, no header")
    add_flags(parser, SpeechConfig)


def run(arguments: argparse.Namespace) -> int:
    """Load the model, speak, and say what is doubtful."""
    config = read_flags(arguments, SpeechConfig)
    if arguments.srt:
        return dub(arguments.srt, arguments.out, config)
    text = wanted_text(arguments)
    if arguments.stream:
        return stream(loaded(config).stream(text, config), sys.stdout.buffer, raw=arguments.raw)
    return record(text, arguments, config)


def wanted_text(arguments: argparse.Namespace) -> str:
    """Return the text that is meant."""
    from utils.dataset.text_files import read_any_encoding

    if arguments.file:
        return read_any_encoding(arguments.file).text
    text: str = sys.stdin.read() if arguments.text == "-" else arguments.text
    if not text.strip():
        raise TextError("There is no text to speak.", hint='Write it behind: python -m utils speak "ሰላም".')
    return text


def loaded(config: SpeechConfig) -> "Synthesizer":
    """Load the model and say what it computes with."""
    from utils.speech.synthesizer import Synthesizer

    found = Synthesizer.load(config.model, config.device, config.precision)
    note(f"{found.model.name}, GPT in {found.chosen.gpt_reason}; vocoder in {found.chosen.vocoder_reason}")
    for notice in found.model.notices:
        note(notice)
    return found


def record(text: str, arguments: argparse.Namespace, config: SpeechConfig) -> int:
    """Speak a text into a file; what is finished when Ctrl-C comes is written too."""
    from utils.media.encoding import kind_of
    from utils.speech.captions import captions, chapters, write_captions, write_chapters

    kind_of(arguments.out)  # before minutes of work
    model = loaded(config)
    speech, interrupted = spoken(model, text, config)
    if not speech.pieces:
        return EXIT_INTERRUPTED
    listed = chapters(speech)
    speech.save(arguments.out, title=text.strip()[:80], model=model.model.name, chapters=listed)
    if arguments.captions:
        write_captions(arguments.captions, captions(speech))
    if arguments.chapters:
        write_chapters(arguments.chapters, listed)
    for sentence in (*speech.notes, *speech.flags):
        note(sentence)
    print(f"{arguments.out}: {speech.seconds:.1f} s" + ", interrupted" * interrupted)
    return EXIT_INTERRUPTED if interrupted else 0


def spoken(model: "Synthesizer", text: str, config: SpeechConfig) -> "tuple[Speech, bool]":
    """Speak a text sentence by sentence, and say how far it is."""
    plan = model.plan(text, config)
    done: list[Spoken] = []
    interrupted = False
    try:
        for piece in model.pieces(text, config):
            done.append(piece)
            note(f"{len(done)}/{len(plan.pieces)}  {piece.seconds:.1f} s  {piece.reading.written[:60]}")
    except KeyboardInterrupt:
        interrupted = True
        note(f"Interrupted after {len(done)} of {len(plan.pieces)}.")
    return model.joined(done, config, plan.notes), interrupted


def dub(subtitles: Path, out: Path, config: SpeechConfig) -> int:
    """Speak subtitles, each in its time."""
    from utils.dataset.subtitles import read_cues
    from utils.media.encoding import kind_of, write_sound
    from utils.media.rates import OUTPUT_RATE

    kind_of(out)
    found = read_cues(subtitles)
    for warning in found.warnings:
        note(warning)
    timeline = loaded(config).dub(found.cues, config)
    write_sound(out, timeline.samples, OUTPUT_RATE)
    for sentence in timeline.notes:
        note(sentence)
    print(f"{out}: {len(timeline.samples) / OUTPUT_RATE:.1f} s, {len(found.cues)} cues")
    return 0


def stream(sound: "Iterable[Samples]", pipe: BinaryIO, *, raw: bool) -> int:
    """Write sound into a pipe as it comes; the reader may close it at any moment."""
    from utils.media.encoding import to_pcm16, wav_header

    try:
        if not raw:
            pipe.write(wav_header())
        for samples in sound:
            pipe.write(to_pcm16(samples))
            pipe.flush()
    except BrokenPipeError:
        note("The reader has closed the pipe.")
        return 1
    return 0


def note(sentence: str) -> None:
    """Write a line beside the result, which may be sound on the standard output."""
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()
