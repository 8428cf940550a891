"""Evaluate models on the same sentences.

First every model speaks, one at a time in memory. Then, with no model loaded, a recogniser transcribes the audio. Every
result is written at once, so an interrupted evaluation continues where it was.
"""

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from utils.config import SEPARATOR, SpeechConfig
from utils.core.errors import AudioError, TextError, for_others
from utils.core.facts import Progress, Report, ShouldStop, ignore, never_stop, raise_if_stopped
from utils.core.storage import file_version, hash_text, make_folder
from utils.evaluation import report as reports
from utils.evaluation.facts import ReportNote
from utils.evaluation.metrics import error_rates, mel_cepstral_distance
from utils.evaluation.report import EvaluationReport
from utils.evaluation.results import EvaluatedUtterance, ResultsLog, digest, file_digest
from utils.evaluation.sentences import EvaluationSentence
from utils.media import audio
from utils.media.arrays import Float32Array
from utils.media.audio import Samples, resample
from utils.media.rates import OUTPUT_RATE
from utils.recognition.facts import RecognitionError
from utils.recognition.recognisers import RATE as RECOGNISER_RATE
from utils.recognition.recognisers import Recogniser
from utils.speech import guards
from utils.speech.synthesizer import Synthesizer
from utils.speech.types import Speech
from utils.xtts.checkpoints import PREFIX
from utils.xtts.device import free_memory

WAVS = "wavs"
BATCH = 8  # clips transcribed at a time
ENCODER_RATE = 16_000  # of the speaker encoder
NOT_SETTINGS = {"model", "reference", "language"}  # part of the model and the sentence instead


class EvaluatedModel:
    """A synthesizer with its speaker encoder; ``encoder`` is the fingerprint of the latter."""

    def __init__(self, synthesizer: Synthesizer) -> None:
        self._synthesizer = synthesizer
        self._encoder: Any = synthesizer.model.vocoder.get_submodule("speaker_encoder")
        fingerprint = hashlib.blake2b(digest_size=8)
        for name, weight in self._encoder.state_dict().items():
            fingerprint.update(name.encode())
            fingerprint.update(weight.detach().float().cpu().contiguous().numpy().tobytes())
        self.encoder = fingerprint.hexdigest()

    def speak(self, text: str, config: SpeechConfig) -> Speech:
        return self._synthesizer.speak(text, config)

    def voice(self, reference: str) -> Float32Array:
        """Return the speaker embedding of a reference: audio files separated by |, a speaker name, or the default."""
        embedding = self._synthesizer.voice(reference).embedding.detach().float().cpu().numpy().reshape(-1)
        return np.asarray(embedding / max(float(np.linalg.norm(embedding)), 1e-9), np.float32)

    def voice_of(self, samples: Samples) -> Float32Array:
        """Return the speaker embedding of 24 kHz audio, with length 1."""
        weight = next(self._encoder.parameters())
        audio = torch.from_numpy(resample(samples, OUTPUT_RATE, ENCODER_RATE))[None].to(weight.device, weight.dtype)
        with torch.no_grad():
            embedding = self._encoder(audio, l2_norm=True)
        return np.asarray(embedding.float().cpu().numpy().reshape(-1), np.float32)


@dataclass(frozen=True)
class Candidate:
    """A model that can be loaded."""

    name: str  # unique
    fingerprint: str  # changes when a file of the model changes
    load: Callable[[], AbstractContextManager[EvaluatedModel]]


def candidates(models: Iterable[Path], open_voice: Callable[[Path], Synthesizer]) -> list[Candidate]:
    """Describe models by their files, without loading them."""
    paths = list(dict.fromkeys(model.resolve() for model in models))
    return [
        Candidate(name, _files_fingerprint(path), partial(_load, path, open_voice))
        for name, path in zip(unique_names(paths), paths, strict=True)
    ]


def unique_names(paths: Sequence[Path]) -> list[str]:
    """Name models after their run and step, or their project; duplicates get a number."""
    names = []
    for path in paths:
        if path.name.startswith(PREFIX) and len(path.parts) > 3:
            base = f"{path.parent.parent.name} {path.name}"
        else:
            base = path.parent.name if path.name == "ready" else path.stem if path.is_file() else path.name
        name = base
        number = 2
        while name in names:
            name = f"{base} ({number})"
            number += 1
        names.append(name)
    return names


@contextmanager
def _load(path: Path, open_voice: Callable[[Path], Synthesizer]) -> Iterator[EvaluatedModel]:
    model = EvaluatedModel(open_voice(path))
    try:
        yield model
    finally:
        model.__dict__.clear()  # anything that still holds the model, such as a traceback, must not hold gigabytes
        free_memory()


def _files_fingerprint(path: Path) -> str:
    folder = path if path.is_dir() else path.parent
    files = [(file.name, *file_version(file)) for file in sorted(folder.iterdir()) if file.is_file()]
    return hash_text(repr((path.name, files)), 12)


class _Task(NamedTuple):
    """A sentence that a model speaks; the key is a hash of everything that its measurement depends on."""

    key: str
    candidate: Candidate
    sentence: EvaluationSentence


def evaluate(
    models: Sequence[Candidate],
    sentences: Sequence[EvaluationSentence],
    folder: Path,
    config: SpeechConfig,
    recogniser: Recogniser | None = None,
    report: Report = ignore,
    should_stop: ShouldStop = never_stop,
) -> EvaluationReport:
    """Evaluate models and write a report; earlier measurements in the folder are reused.

    The folder holds a report of everything finished even when the evaluation is interrupted. Without a recogniser,
    error rates stay empty.
    """
    settings = config.model_dump(exclude=NOT_SETTINGS)
    tasks = [
        _Task(digest(candidate.fingerprint, _identity(sentence), settings), candidate, sentence)
        for candidate in models
        for sentence in sentences
    ]
    missing: ReportNote | None = ReportNote("no_recogniser")  # why there are no transcripts
    with closing(ResultsLog(folder)) as log:
        try:
            _speak_all(log, tasks, config, report, should_stop)
            if recogniser:
                missing = _transcribe(log, tasks, recogniser, report, should_stop)
        finally:
            name = recogniser.name if recogniser else next(iter(log.recognisers({task.key for task in tasks})), "")
            written = _report(log, tasks, name, settings, missing)
            reports.save(written)
    return written


def _speak_all(
    log: ResultsLog, tasks: Sequence[_Task], config: SpeechConfig, report: Report, should_stop: ShouldStop
) -> None:
    """Let every model speak the sentences that have no measurement yet."""
    missing = [task for task in tasks if log.utterance(task.key) is None]
    total = len(tasks)
    done = len(tasks) - len(missing)
    for candidate, group in groupby(missing, key=lambda task: task.candidate):
        report(Progress(done, total, candidate.name))
        with candidate.load() as model:
            log.add_encoder(candidate.fingerprint, model.encoder)
            for task in group:
                raise_if_stopped(should_stop)
                log.add(_speak(model, task, log.folder, config))
                done += 1
                report(Progress(done, total, candidate.name))


def _speak(model: EvaluatedModel, task: _Task, folder: Path, config: SpeechConfig) -> EvaluatedUtterance:
    """Speak one sentence, save its audio, and measure everything that needs no transcript."""
    sentence = task.sentence
    utterance = _unspoken(task)
    settings = config.model_copy(update={"reference": sentence.reference, "language": sentence.language})
    start = time.monotonic()
    try:
        speech = model.speak(sentence.text, settings)
        voice = model.voice(sentence.reference)
    except (TextError, AudioError) as error:  # about this sentence only
        return replace(utterance, error=for_others(error))
    pace = speech.seconds and (time.monotonic() - start) / speech.seconds
    utterance = replace(
        utterance,
        flags=speech.flags,
        tries=max((part.tries for part in speech.utterances), default=1),
        real_time_factor=speech.real_time_factor or pace or None,
    )
    if not speech.samples.size or not np.isfinite(speech.samples).all():
        return utterance  # the flags say so
    utterance = _compared(utterance, speech, sentence)
    return replace(
        utterance,
        wav=_save_audio(speech.samples, folder, utterance),
        similarity=float(voice @ model.voice_of(speech.samples)),
    )


def _unspoken(task: _Task) -> EvaluatedUtterance:
    """Return what is known of a sentence before it is spoken."""
    return EvaluatedUtterance(
        key=task.key,
        checkpoint=task.candidate.name,
        text=task.sentence.text,
        language=task.sentence.language,
        voice=task.sentence.voice,
        sentence=_identity(task.sentence),
        recording=Path(task.sentence.recording).name,
    )


def _compared(utterance: EvaluatedUtterance, speech: Speech, sentence: EvaluationSentence) -> EvaluatedUtterance:
    """Compare speech with the recording of the sentence, or else with how long such a text usually takes."""
    spoken = guards.AudioAnalysis(speech.samples)
    if not sentence.recording:
        return replace(utterance, seconds=spoken.spoken, expected=_usual_length(speech, sentence.language))
    recording = guards.AudioAnalysis(audio.load(sentence.recording, OUTPUT_RATE))
    distance = mel_cepstral_distance(guards.trim(spoken), guards.trim(recording))
    return replace(utterance, seconds=spoken.spoken, expected=recording.spoken, distance=distance)


def _usual_length(speech: Speech, language: str) -> float | None:
    """Return how many seconds such a text usually takes, pauses between sentences included."""
    count = sum(guards.sounds(part.sentence.tokenized) for part in speech.utterances)
    seconds = count / guards.SpeechLimits.of(language).usual
    return seconds + sum(part.pause for part in speech.utterances[:-1]) if seconds else None


def _save_audio(samples: Samples, folder: Path, utterance: EvaluatedUtterance) -> str:
    """Save audio under a readable name; return its path relative to the folder."""
    model, text = (
        re.sub(r"[^\w.-]+", "_", name).strip("._")[:length] or "text"
        for name, length in ((utterance.checkpoint, 60), (utterance.text, 30))
    )
    path = Path(WAVS, model, f"{text}_{utterance.key[:8]}.wav")
    make_folder((folder / path).parent)
    audio.save(folder / path, samples, OUTPUT_RATE)
    return path.as_posix()


def _transcribe(
    log: ResultsLog, tasks: Sequence[_Task], recogniser: Recogniser, report: Report, should_stop: ShouldStop
) -> ReportNote | None:
    """Transcribe speech and recordings that have no transcript yet; return why some have none, if so."""
    name = recogniser.name
    missing = sorted(_unheard(log, tasks, name), key=lambda clip: clip[0])
    try:
        for language, group in groupby(missing, key=lambda clip: clip[0]):
            same = list(group)
            for start in range(0, len(same), BATCH):
                raise_if_stopped(should_stop)
                report(Progress(start, len(same), name))
                batch = same[start : start + BATCH]
                samples = [audio.load(path, RECOGNISER_RATE) for _, _, path in batch]
                for (_, key, _), transcript in zip(batch, recogniser.transcribe(samples, language), strict=True):
                    log.add_transcript(key, name, transcript.text)
    except RecognitionError as error:
        return ReportNote("not_transcribed", detail=f"{name}: {for_others(error)}")
    return None


def _unheard(log: ResultsLog, tasks: Sequence[_Task], recogniser: str) -> Iterator[tuple[str, str, Path]]:
    """Yield the language, the key and the path of each sound that has no transcript yet."""
    clips = {}
    for task in tasks:
        if (result := log.utterance(task.key)) is not None and result.wav:
            clips[task.key] = log.folder / result.wav, result.language
        if task.sentence.recording:
            clips[_recording_key(task.sentence)] = Path(task.sentence.recording), task.sentence.language
    for key, (path, language) in clips.items():
        if log.transcript(key, recogniser) is None:
            yield language, key, path


def _report(
    log: ResultsLog, tasks: Sequence[_Task], recogniser: str, settings: dict[str, Any], unheard: ReportNote | None
) -> EvaluationReport:
    results = [result for task in tasks if (result := _measured(log, task, recogniser))]
    encoders = {log.encoders.get(task.candidate.fingerprint, "") for task in tasks} - {""}
    if len(encoders) > 1:
        results = [replace(result, similarity=None) for result in results]
    missing = len(tasks) - len(results)
    complete = bool(results) and all(result.transcript is not None for result in results if result.wav)
    return EvaluationReport(
        folder=log.folder,
        utterances=tuple(sorted(results, key=reports.badness, reverse=True)),
        checkpoints=tuple(dict.fromkeys(task.candidate.name for task in tasks)),
        notes=tuple(_notes(results, missing, None if complete else unheard, encoders)),
        recording_error_rates=_recording_error_rates(log, tasks, recogniser),
        settings=settings | {"recogniser": recogniser},
        missing=missing,
    )


def _measured(log: ResultsLog, task: _Task, recogniser: str) -> EvaluatedUtterance | None:
    """Return what was measured of a sentence, with the errors of its transcript."""
    if (result := log.utterance(task.key)) is None:
        return None
    transcript = log.transcript(task.key, recogniser)
    rates = None if transcript is None else error_rates(result.text, transcript, result.language)
    return replace(
        result,
        checkpoint=task.candidate.name,
        recording=Path(result.recording).name,  # version 1.1 stored the whole path
        transcript=transcript,
        recogniser="" if transcript is None else recogniser,
        cer=rates.cer if rates else None,
        wer=rates.wer if rates else None,
    )


def _recording_error_rates(log: ResultsLog, tasks: Sequence[_Task], recogniser: str) -> dict[str, float]:
    recorded = {task.sentence.recording: task.sentence for task in tasks if task.sentence.recording}
    rates = [
        rate
        for sentence in recorded.values()
        if (text := log.transcript(_recording_key(sentence), recogniser)) is not None
        if (rate := error_rates(sentence.text, text, sentence.language))
    ]
    return {name: float(np.mean([getattr(rate, name) for rate in rates])) for name in ("cer", "wer") if rates}


def _notes(
    results: Sequence[EvaluatedUtterance], missing: int, unheard: ReportNote | None, encoders: set[str]
) -> Iterator[ReportNote]:
    """Say what is missing from the report and why."""
    if missing:
        yield ReportNote("unfinished", missing)
    if unheard:
        yield unheard
    if results and not any(result.recording for result in results):
        yield ReportNote("no_recordings")
    if any(result.flags for result in results):
        yield ReportNote("flags")
    if len(encoders) > 1:
        yield ReportNote("other_encoders")


def _identity(sentence: EvaluationSentence) -> str:
    references = [file_digest(part) for part in sentence.reference.split(SEPARATOR)]
    return digest(sentence.text, sentence.language, sentence.voice, references, file_digest(sentence.recording))


def _recording_key(sentence: EvaluationSentence) -> str:
    return digest("recording", file_digest(sentence.recording))
