"""Evaluate models on the same sentences.

First every model speaks, one at a time in memory. Then, with no model loaded, a recogniser transcribes the audio. Every
result is written at once, so an interrupted evaluation continues where it was.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from utils.config import SEPARATOR, SpeechConfig
from utils.core.errors import AudioError, TextError
from utils.core.storage import make_folder
from utils.dataset.recognisers import RATE as RECOGNISER_RATE
from utils.dataset.recognisers import Recogniser, RecognitionError
from utils.evaluation import report as reports
from utils.evaluation.candidates import Candidate, LoadedModel
from utils.evaluation.metrics import error_rates, mel_cepstral_distance
from utils.evaluation.report import EvaluationReport
from utils.evaluation.results import EvaluatedUtterance, ResultsLog, digest, file_digest
from utils.evaluation.sentences import EvaluationSentence
from utils.media import audio
from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE
from utils.speech import guards
from utils.speech.types import Speech

WAVS = "wavs"
BATCH = 8  # clips transcribed at a time
NOT_SETTINGS = {"model", "reference", "language"}  # part of the model and the sentence instead
NO_RECOGNISER = "no recogniser was given (for example --asr large-v3)"


@dataclass(frozen=True)
class EvaluationProgress:
    """Progress of an evaluation.

    Attributes:
        stage: What is being done.
        step: Sentences done.
        total: Sentences in all.
        text: The last sentence.
    """

    stage: str
    step: int
    total: int
    text: str = ""


OnProgress = Callable[[EvaluationProgress], object]


@dataclass(frozen=True)
class _Task:
    """What is evaluated: every candidate with every sentence."""

    candidates: Sequence[Candidate]
    sentences: Sequence[EvaluationSentence]
    config: SpeechConfig

    def key(self, candidate: Candidate, sentence: EvaluationSentence) -> str:
        """Hash everything that a measurement depends on."""
        return digest(candidate.fingerprint, _identity(sentence), self.config.model_dump(exclude=NOT_SETTINGS))

    def all_keys(self) -> list[str]:
        return [self.key(candidate, sentence) for candidate in self.candidates for sentence in self.sentences]


def evaluate(
    candidates: Sequence[Candidate],
    sentences: Sequence[EvaluationSentence],
    folder: Path,
    config: SpeechConfig,
    recogniser: Recogniser | None = None,
    on_progress: OnProgress = lambda _: None,
) -> EvaluationReport:
    """Evaluate models and write a report; earlier measurements in the folder are reused.

    The folder holds a report of everything finished even when the evaluation is interrupted.

    Args:
        candidates: The models.
        sentences: What they speak.
        folder: Folder for the report and the audio.
        config: Speech settings.
        recogniser: Transcribes the audio; without one, error rates stay empty.
        on_progress: Called after every sentence.
    """
    task = _Task(candidates, sentences, config)
    not_transcribed = NO_RECOGNISER
    with ResultsLog(folder) as log:
        try:
            _speak_all(log, task, on_progress)
            if recogniser:
                not_transcribed = _transcribe(log, task, recogniser, on_progress)
        finally:
            report = _report(log, task, recogniser, not_transcribed)
            reports.save(report)
    reports.plot(report)
    return report


def _speak_all(log: ResultsLog, task: _Task, on_progress: OnProgress) -> None:
    """Let every model speak the sentences that have no measurement yet."""
    total, done = len(task.candidates) * len(task.sentences), 0
    for candidate in task.candidates:
        keyed = [(task.key(candidate, sentence), sentence) for sentence in task.sentences]
        missing = [(key, sentence) for key, sentence in keyed if log.utterance(key) is None]
        done += len(keyed) - len(missing)
        if not missing:
            continue
        on_progress(EvaluationProgress(f"{candidate.name}: loading", done, total))
        with candidate.load() as model:
            log.add_encoder(candidate.fingerprint, model.encoder)
            for key, sentence in missing:
                log.add(_speak(model, candidate.name, sentence, key, log.folder, task.config))
                done += 1
                on_progress(EvaluationProgress(candidate.name, done, total, sentence.text))


def _speak(
    model: LoadedModel, name: str, sentence: EvaluationSentence, key: str, folder: Path, config: SpeechConfig
) -> EvaluatedUtterance:
    """Speak one sentence, save its audio, and measure everything that needs no transcript."""
    utterance = EvaluatedUtterance(
        key, name, sentence.text, sentence.language, sentence.voice, _identity(sentence), recording=sentence.recording
    )
    settings = config.model_copy(update={"reference": sentence.reference, "language": sentence.language})
    start = time.monotonic()
    try:
        speech = model.speak(sentence.text, settings)
        voice = model.voice(sentence.reference)
    except (TextError, AudioError) as error:  # about this sentence only
        return replace(utterance, error=str(error))
    seconds = time.monotonic() - start
    utterance = replace(
        utterance,
        flags=speech.flags,
        tries=max((one.tries for one in speech.utterances), default=1),
        real_time_factor=speech.real_time_factor or (seconds / speech.seconds if speech.seconds else None),
    )
    if not speech.samples.size or not np.isfinite(speech.samples).all():
        return utterance  # the flags say so
    recording = audio.load(sentence.recording, OUTPUT_RATE) if sentence.recording else None
    return replace(
        utterance,
        wav=_save_audio(speech.samples, folder, utterance),
        seconds=guards.AudioAnalysis(speech.samples).spoken,
        expected=_usual_length(speech, sentence.language)
        if recording is None
        else guards.AudioAnalysis(recording).spoken,
        similarity=float(voice @ model.voice_of(speech.samples)),
        distance=None if recording is None else mel_cepstral_distance(_trimmed(speech.samples), _trimmed(recording)),
    )


def _usual_length(speech: Speech, language: str) -> float | None:
    """Return how many seconds such a text usually takes, pauses between sentences included."""
    count = sum(guards.sounds(one.sentence.tokenized) for one in speech.utterances)
    seconds = count / guards.SpeechLimits.of(language).usual
    return seconds + sum(one.pause for one in speech.utterances[:-1]) if seconds else None


def _trimmed(samples: Samples) -> Samples:
    return guards.trim(guards.AudioAnalysis(samples))


def _save_audio(samples: Samples, folder: Path, utterance: EvaluatedUtterance) -> str:
    """Save audio under a readable name; return its path relative to the folder."""
    name = f"{_file_name(utterance.text, 30)}_{utterance.key[:8]}.wav"
    path = Path(WAVS, _file_name(utterance.checkpoint, 60), name)
    make_folder((folder / path).parent)
    audio.save(folder / path, samples, OUTPUT_RATE)
    return path.as_posix()


def _file_name(text: str, length: int) -> str:
    return re.sub(r"[^\w.-]+", "_", text).strip("._")[:length] or "text"


def _transcribe(log: ResultsLog, task: _Task, recogniser: Recogniser, on_progress: OnProgress) -> str:
    """Transcribe all audio that has no transcript yet; return why some was not, if so."""
    name = recogniser.name
    clips = [clip for clip in _clips(log, task) if log.transcript(clip[0], name) is None]
    clips.sort(key=lambda clip: clip[2])
    try:
        for language, group in groupby(clips, key=lambda clip: clip[2]):
            same = list(group)
            for start in range(0, len(same), BATCH):
                on_progress(EvaluationProgress(f"{name}: transcribing", start, len(same)))
                batch = same[start : start + BATCH]
                samples = [audio.load(path, RECOGNISER_RATE) for _, path, _ in batch]
                for (key, _, _), result in zip(batch, recogniser.transcribe(samples, language), strict=True):
                    log.add_transcript(key, name, result.text)
    except RecognitionError as error:
        return f"{name} could not transcribe all clips: {error}"
    return ""


def _clips(log: ResultsLog, task: _Task) -> Iterator[tuple[str, Path, str]]:
    """Yield key, path and language of everything to transcribe: the speech and the recordings."""
    for key in task.all_keys():
        result = log.utterance(key)
        if result is not None and result.wav:
            yield key, log.folder / result.wav, result.language
    recorded = {sentence.recording: sentence for sentence in task.sentences if sentence.recording}
    for sentence in recorded.values():
        yield _recording_key(sentence), Path(sentence.recording), sentence.language


def _report(log: ResultsLog, task: _Task, recogniser: Recogniser | None, not_transcribed: str) -> EvaluationReport:
    keys = task.all_keys()
    name = recogniser.name if recogniser else next(iter(log.recognisers(set(keys))), "")
    results = [
        _with_error_rates(replace(result, checkpoint=candidate.name), log.transcript(result.key, name), name)
        for candidate in task.candidates
        for sentence in task.sentences
        if (result := log.utterance(task.key(candidate, sentence))) is not None
    ]
    encoders = {log.encoders.get(candidate.fingerprint, "") for candidate in task.candidates} - {""}
    if len(encoders) > 1:
        results = [replace(result, similarity=None) for result in results]
    missing = len(keys) - len(results)
    complete = bool(results) and all(result.transcript is not None for result in results if result.wav)
    return EvaluationReport(
        folder=log.folder,
        utterances=reports.sorted_by_badness(results),
        checkpoints=tuple(candidate.name for candidate in task.candidates),
        notes=tuple(_notes(results, missing, "" if complete else not_transcribed, encoders)),
        recording_error_rates=_recording_error_rates(log, task.sentences, name),
        settings=task.config.model_dump(exclude=NOT_SETTINGS) | {"recogniser": name},
        missing=missing,
    )


def _with_error_rates(utterance: EvaluatedUtterance, transcript: str | None, recogniser: str) -> EvaluatedUtterance:
    rates = None if transcript is None else error_rates(utterance.text, transcript, utterance.language)
    return replace(
        utterance,
        transcript=transcript,
        recogniser="" if transcript is None else recogniser,
        cer=rates.cer if rates else None,
        wer=rates.wer if rates else None,
    )


def _notes(
    results: Sequence[EvaluatedUtterance], missing: int, not_transcribed: str, encoders: set[str]
) -> Iterator[str]:
    """Say what is missing from the report and why."""
    if missing:
        yield f"{missing} sentences are not spoken yet. Run the same command again to continue."
    if not_transcribed:
        partly = any(result.transcript is not None for result in results)
        yield f"CER and WER are {'incomplete' if partly else 'empty'}: {not_transcribed}."
    if results and not any(result.recording for result in results):
        yield "MCD is empty: there are no recordings of these sentences. Length is compared with the usual pace."
    if any(result.flags for result in results):
        yield "A flag marks something unusual, not necessarily an error; errors may also go unflagged."
    if len(encoders) > 1:
        yield "Voice is empty: the models have different speaker encoders, so their values cannot be compared."


def _recording_error_rates(
    log: ResultsLog, sentences: Sequence[EvaluationSentence], recogniser: str
) -> dict[str, float]:
    """Return the mean error rates of the recordings themselves."""
    rates = [
        rate
        for sentence in sentences
        if sentence.recording and (text := log.transcript(_recording_key(sentence), recogniser)) is not None
        if (rate := error_rates(sentence.text, text, sentence.language))
    ]
    return {name: float(np.mean([getattr(rate, name) for rate in rates])) for name in ("cer", "wer") if rates}


def _identity(sentence: EvaluationSentence) -> str:
    """Hash a sentence with the content of its files."""
    references = [file_digest(part) for part in sentence.reference.split(SEPARATOR)]
    return digest(sentence.text, sentence.language, sentence.voice, references, file_digest(sentence.recording))


def _recording_key(sentence: EvaluationSentence) -> str:
    return digest("recording", file_digest(sentence.recording))
