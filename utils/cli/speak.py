"""Speak a text, a file or timed subtitles, and write the audio to a file or a pipe.

speak "ሰላም ለዓለም" --reference me.wav --out hello.wav
speak --file book.epub --out book.m4b --captions book.srt
speak --srt film.srt --out film.wav
speak "ሰላም" --stream | aplay
"""

import argparse
import contextlib
import hashlib
import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from utils.cli.runs import add_output
from utils.config import SpeechConfig
from utils.config.flags import add_flags, read_flags
from utils.core import integrations, wording
from utils.core.errors import EXIT_INTERRUPTED, UnwritableError
from utils.core.fields import field_values
from utils.core.storage import atomic_writer, make_folder, write_atomically
from utils.core.wording import describe
from utils.dataset.documents import read_document
from utils.dataset.subtitles import read_cues
from utils.media.audio import Samples
from utils.media.encoding import AUDIO_FORMATS, format_of, to_pcm16, wav_header, write_audio
from utils.media.rates import OUTPUT_RATE
from utils.speech.facts import Flag, WordsFound
from utils.speech.subtitles import captions, chapters, write_captions, write_chapters
from utils.speech.types import Sentence, Speech, Utterance
from utils.studio.facts import InputError, UsageError
from utils.studio.loading import chosen_voice

if TYPE_CHECKING:
    from utils.speech.planning import SpeechPlan
    from utils.speech.synthesizer import Synthesizer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    source = parser.add_mutually_exclusive_group()
    source.add_argument("text", nargs="?", default="", help="the text; - reads it from standard input")
    source.add_argument("--file", type=Path, metavar="TEXT", help="a text of any length: .txt, .md, .epub or .docx")
    source.add_argument("--srt", type=Path, metavar="SUBTITLES", help="subtitle file; each cue is spoken at its time")
    parser.add_argument("--out", type=Path, default=Path("speech.wav"), help="audio file (default: speech.wav)")
    parser.add_argument("--captions", type=Path, metavar="FILE", help="write the time of each sentence: .srt or .vtt")
    parser.add_argument("--chapters", type=Path, metavar="FILE", help="write the time of each heading: .txt or .json")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write which words are heard, as JSON")
    parser.add_argument("--stream", action="store_true", help="write WAV to standard output while speaking")
    parser.add_argument("--raw", action="store_true", help="with --stream: 16-bit samples at 24000 Hz, no header")
    add_output(parser)
    add_flags(parser, SpeechConfig)


def run(arguments: argparse.Namespace) -> int:
    config = read_flags(arguments, SpeechConfig)
    if arguments.output.suffix.lower() in AUDIO_FORMATS:
        raise UsageError("file_as_output", str(arguments.output))
    if arguments.srt:
        return dub(arguments, config)
    text = read_input(arguments)
    if arguments.stream:
        return stream(load(config, arguments.output).stream(text, config), sys.stdout.buffer, raw=arguments.raw)
    return speak_to_file(text, arguments, config)


def read_input(arguments: argparse.Namespace) -> str:
    """Read the text from the arguments, a file or standard input."""
    if arguments.file:
        return read_document(arguments.file)
    text = sys.stdin.read() if arguments.text == "-" else arguments.text
    if not text.strip():
        raise InputError("empty_text")
    return text


def load(config: SpeechConfig, output: Path) -> "Synthesizer":
    """Load the model and report what it computes with."""
    synthesizer = chosen_voice(config, output)
    precision = synthesizer.precision
    gpt = describe(precision.gpt_reason)
    vocoder = describe(precision.vocoder_reason)
    log(f"{synthesizer.model.name}, GPT in {precision.gpt}: {gpt}; vocoder in {precision.vocoder}: {vocoder}")
    for notice in synthesizer.model.notices:
        log(wording.describe(notice))
    return synthesizer


class FinishedSentences:
    """Stores spoken sentences in a hidden folder beside the audio file that they will become, so that a book continues.

    A sentence that was spoken with another model, voice or setting is spoken again.
    """

    def __init__(self, out: Path, model: str, voice: str, config: SpeechConfig) -> None:
        self.out = out
        self.folder = out.with_name(f".{out.name}.parts")
        self.key = f"words|{model}|{voice}|{config.model_dump_json()}"

    def _path(self, sentence: Sentence) -> Path:
        content = f"{self.key}|{sentence.seed}|{sentence.max_codes}|{sentence.tokenized.model_text}"
        return self.folder / f"{hashlib.sha256(content.encode()).hexdigest()[:24]}.npz"

    def __contains__(self, sentence: Sentence) -> bool:
        return self._path(sentence).is_file()

    def add(self, sentence: Sentence, utterance: Utterance) -> None:
        """Store an utterance; ``sentence`` is what was planned, while a retry was spoken with another seed."""
        flags = np.array([json.dumps(vars(flag)) for flag in utterance.flags], str)
        numbers = np.array([utterance.sentence.seed, utterance.tries, utterance.ended, utterance.words])
        try:
            make_folder(self.folder)
            with atomic_writer(self._path(sentence)) as file:
                np.savez(file, samples=utterance.samples, codes=utterance.codes, flags=flags, numbers=numbers)
        except UnwritableError as error:  # named by the file that was asked for
            raise type(error)(self.out, error.reason) from error

    def load(self, sentence: Sentence) -> Utterance:
        with np.load(self._path(sentence)) as stored:
            seed, tries, ended, words = map(int, stored["numbers"])
            flags = tuple(Flag.read(json.loads(str(flag))) for flag in stored["flags"])
            spoken = replace(sentence, seed=seed)
            return Utterance(spoken, stored["samples"], stored["codes"], bool(ended), flags, tries, words=words)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def speak_to_file(text: str, arguments: argparse.Namespace, config: SpeechConfig) -> int:
    """Speak a text into a file, sentence by sentence.

    After Ctrl-C, what is finished is written. Repeating the command continues from there, also after a crash.
    """
    format_of(arguments.out)  # before the long work
    synthesizer = load(config, arguments.output)
    plan = synthesizer.plan(text, config)
    voice = synthesizer.voice(config.reference)
    finished = FinishedSentences(arguments.out, synthesizer.model.fingerprint, voice.key, config)
    interrupted = False
    try:
        speak_missing(synthesizer, plan, finished, config)
    except KeyboardInterrupt:
        interrupted = True
    done = [finished.load(sentence) for sentence in plan.sentences if sentence in finished]
    if interrupted:
        log(f"Interrupted after {len(done)} of {len(plan.sentences)}. Run the same command again to continue.")
    if not done:
        return EXIT_INTERRUPTED
    speech = synthesizer.join(done, config, plan.notes)
    write_files(speech, arguments, text, synthesizer.model.name)
    for message in notes_on(speech):
        log(message)
    print(f"{arguments.out}: {speech.seconds:.1f} s{', interrupted' if interrupted else ''}")
    if interrupted:
        return EXIT_INTERRUPTED
    finished.remove()
    return 0


def speak_missing(
    synthesizer: "Synthesizer", plan: "SpeechPlan", finished: FinishedSentences, config: SpeechConfig
) -> None:
    """Speak and store the sentences that are not stored yet."""
    missing = tuple(sentence for sentence in plan.sentences if sentence not in finished)
    if count := len(plan.sentences) - len(missing):
        log(f"{count} of {len(plan.sentences)} sentences are already spoken.")
    utterances = synthesizer.utterances(plan._replace(sentences=missing), config)
    for number, (sentence, utterance) in enumerate(zip(missing, utterances, strict=True), count + 1):
        finished.add(sentence, utterance)
        log(f"{number}/{len(plan.sentences)}  {utterance.seconds:.1f} s  {sentence.text[:60]}")


def write_files(speech: Speech, arguments: argparse.Namespace, text: str, model: str) -> None:
    """Write the audio, and the captions, chapters and report that are asked for."""
    marks = chapters(speech)
    speech.save(arguments.out, title=text.strip()[:80], model=model, chapters=marks)
    if arguments.captions:
        write_captions(arguments.captions, captions(speech))
    if arguments.chapters:
        write_chapters(arguments.chapters, marks)
    if arguments.report:
        write_atomically(arguments.report, json.dumps(report_of(speech), ensure_ascii=False, indent=1))


def report_of(speech: Speech) -> dict[str, object]:
    """Return what was checked: the words that are found, and each sentence with what is unusual about it."""
    sentences = [
        {"line": each.sentence.line, "text": each.sentence.text, "start": round(each.start, 2), "words": each.words}
        | {"tries": each.tries, "flags": [vars(flag) for flag in each.flags]}
        for each in speech.utterances
    ]
    return {**field_values(WordsFound.of(speech.utterances)), "sentences": sentences}


def notes_on(speech: Speech) -> Iterator[str]:
    """Describe what happened, which words are heard, and the sentences that the guards found something wrong with."""
    yield from map(describe, speech.notes)
    checked = WordsFound.of(speech.utterances)
    if checked.total:
        yield describe(checked)
    for each in speech.utterances:
        if each.flags:
            yield f"Listen to line {each.sentence.line}: {' '.join(map(str, each.flags))}: {each.sentence.text[:60]}"


def dub(arguments: argparse.Namespace, config: SpeechConfig) -> int:
    """Speak subtitles, each at its time."""
    out = arguments.out
    format_of(out)
    cues, warnings = read_cues(arguments.srt)
    for warning in warnings:
        log(str(warning))
    timeline = integrations.require("dub")(load(config, arguments.output), cues, config)
    write_audio(out, timeline.samples, OUTPUT_RATE)
    for number, flag in timeline.flags:
        log(f"Cue {number}: {flag}")
    print(f"{out}: {len(timeline.samples) / OUTPUT_RATE:.1f} s, {len(cues)} cues")
    return 0


def stream(chunks: Iterable[Samples], pipe: BinaryIO, *, raw: bool) -> int:
    """Write audio into a pipe as it comes; the reader may close it at any time."""
    try:
        if not raw:
            pipe.write(wav_header())
        for samples in chunks:
            pipe.write(to_pcm16(samples))
            pipe.flush()
    except BrokenPipeError:
        log("The reader closed the pipe.")
        return 1
    return 0


def log(message: str) -> None:
    """Print to standard error, since standard output may carry the audio; go on if it cannot be written."""
    with contextlib.suppress(OSError):
        print(message, file=sys.stderr, flush=True)
