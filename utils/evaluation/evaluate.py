"""Letting models speak the same sentences, and measuring what comes of it.

First every model speaks, one at a time in memory; then, with none of them in memory, a recogniser listens. Each result
is on disk before the next one is begun.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from utils.config import SpeechConfig
from utils.dataset.transcription import RATE as HEARD_AT
from utils.dataset.transcription import Recogniser, RecognitionError
from utils.evaluation import report as reports
from utils.evaluation.error_rates import error_rates
from utils.evaluation.measure import NOT_THE_SPEECH, key_of, key_of_recording, spoken
from utils.evaluation.models import Candidate
from utils.evaluation.plots import draw
from utils.evaluation.report import EvaluationReport
from utils.evaluation.results_log import Record, judged
from utils.evaluation.utterance import TestSentence, Utterance
from utils.media import audio

CLIPS = 8  # heard at a time
UNNAMED = "No recogniser was named (--asr large-v3), so nobody listened for wrong words."


@dataclass(frozen=True)
class EvaluationProgress:
    """How far an evaluation is.

    Attributes:
        stage: What is being done: a model's name, or that somebody listens.
        step: Sentences done.
        total: Sentences in all.
        text: The sentence that was done last.
    """

    stage: str
    step: int
    total: int
    text: str = ""


Tell = Callable[[EvaluationProgress], None]


@dataclass(frozen=True)
class Hearing:
    """Who listens.

    Attributes:
        recogniser: None when nobody does.
        why_not: The reason, as a sentence.
    """

    recogniser: Recogniser | None = None
    why_not: str = UNNAMED


def _say_nothing(_progress: EvaluationProgress) -> None:
    """Keep progress to oneself."""


def evaluate(
    candidates: Sequence[Candidate],
    sentences: Sequence[TestSentence],
    folder: Path,
    config: SpeechConfig,
    hearing: Hearing = Hearing(),
    tell: Tell = _say_nothing,
) -> EvaluationReport:
    """Judge models by the same sentences and write a report; what was measured before is not measured again.

    However it ends, the folder holds a report of what was finished.

    Args:
        candidates: The models.
        sentences: What they speak.
        folder: Where report and sounds go.
        config: How they speak.
        hearing: Who listens for wrong words.
        tell: Hears of every sentence that is done.
    """
    with Record(folder) as record:
        try:
            _speak(record, candidates, sentences, config, tell)
            hearing = _listen(record, _keys(candidates, sentences, config), sentences, hearing, tell)
        finally:
            report = _report(record, candidates, sentences, config, hearing)
            reports.save(report)
    draw(report)
    return report


def _speak(
    record: Record, candidates: Sequence[Candidate], sentences: Sequence[TestSentence], config: SpeechConfig, tell: Tell
) -> None:
    """Let every model speak what it has not spoken yet."""
    total, done = len(candidates) * len(sentences), 0
    for candidate in candidates:
        keys = [key_of(candidate, sentence, config) for sentence in sentences]
        left = [(key, one) for key, one in zip(keys, sentences, strict=True) if record.utterance(key) is None]
        done += len(sentences) - len(left)
        if not left:
            continue
        tell(EvaluationProgress(f"{candidate.name}: loading", done, total))
        with candidate.opened() as model:
            record.add_encoder(candidate.fingerprint, model.encoder)
            for key, sentence in left:
                record.add(spoken(model, candidate.name, sentence, key, record.folder, config))
                done += 1
                tell(EvaluationProgress(candidate.name, done, total, sentence.text))


def _listen(
    record: Record, keys: Sequence[str], sentences: Sequence[TestSentence], hearing: Hearing, tell: Tell
) -> Hearing:
    """Let the recogniser hear every sound that it has not heard yet; when it fails, the reason takes its place."""
    if hearing.recogniser is None:
        return hearing
    name = hearing.recogniser.name
    left = [one for one in _sounds(record, keys, sentences) if record.heard(one[0], name) is None]
    try:
        for language, group in groupby(sorted(left, key=lambda one: one[2]), key=lambda one: one[2]):
            same = list(group)
            for first in range(0, len(same), CLIPS):
                tell(EvaluationProgress(f"{name} listens", first, len(same)))
                batch = same[first : first + CLIPS]
                clips = [audio.load(path, HEARD_AT) for _, path, _ in batch]
                for (key, _, _), said in zip(batch, hearing.recogniser.transcribe(clips, language), strict=True):
                    record.add_heard(key, name, said.text)
    except RecognitionError as error:
        return Hearing(hearing.recogniser, f"{name} could not listen to all sentences: {error}")
    return Hearing(hearing.recogniser, "")


def _sounds(record: Record, keys: Sequence[str], sentences: Sequence[TestSentence]) -> Iterator[tuple[str, Path, str]]:
    """Yield everything that can be heard, with its key and language: the speech, and the recordings."""
    for key in keys:
        one = record.utterance(key)
        if one is not None and one.wav:
            yield key, record.folder / one.wav, one.language
    for sentence in {one.recording: one for one in sentences if one.recording}.values():
        yield key_of_recording(sentence), Path(sentence.recording), sentence.language


def _report(
    record: Record,
    candidates: Sequence[Candidate],
    sentences: Sequence[TestSentence],
    config: SpeechConfig,
    hearing: Hearing,
) -> EvaluationReport:
    """Put together what was measured, and say what was not."""
    keys = _keys(candidates, sentences, config)
    known = record.recognisers(set(keys))
    name = hearing.recogniser.name if hearing.recogniser else next(iter(known), "")
    found = [
        judged(replace(one, checkpoint=candidate.name), record.heard(one.key, name), name)
        for candidate in candidates
        for sentence in sentences
        if (one := record.utterance(key_of(candidate, sentence, config))) is not None
    ]
    notes = []
    encoders = {record.encoders.get(candidate.fingerprint, "") for candidate in candidates}
    if len(encoders - {""}) > 1:
        found = [replace(one, similarity=None) for one in found]
        notes.append("Voice is empty: the models have different speaker encoders, whose figures cannot be compared.")
    heard_all = all(one.heard is not None for one in found if one.wav)
    missing = len(keys) - len(found)
    notes = [*_notes(found, missing, "" if heard_all and found else hearing.why_not), *notes]
    return EvaluationReport(
        folder=record.folder,
        utterances=reports.sorted_by_badness(found),
        checkpoints=tuple(candidate.name for candidate in candidates),
        notes=tuple(notes),
        yardstick=_yardstick(record, sentences, name),
        settings=config.model_dump(exclude=NOT_THE_SPEECH) | {"recogniser": name},
        missing=missing,
    )


def _notes(found: Sequence[Utterance], missing: int, unheard: str) -> Iterator[str]:
    """Say what has to be known to read the figures."""
    if missing:
        yield f"{missing} sentences were not spoken yet; the same command goes on from here."
    if unheard:
        half = any(one.heard is not None for one in found)
        yield f"CER and WER are {'incomplete' if half else 'empty'}: {unheard}"
    if found and not any(one.recording for one in found):
        yield "MCD is empty: there are no recordings of these sentences. Length is compared with a usual pace."
    if any(one.flags for one in found):
        yield "A flag says that something is unusual, not that it is wrong; what no flag names may be wrong too."


def _yardstick(record: Record, sentences: Sequence[TestSentence], recogniser: str) -> dict[str, float]:
    """Return how wrongly the recogniser hears the recordings themselves."""
    heard = [
        rates
        for sentence in sentences
        if sentence.recording and (text := record.heard(key_of_recording(sentence), recogniser)) is not None
        if (rates := error_rates(sentence.text, text, sentence.language))
    ]
    if not heard:
        return {}
    return {name: float(np.mean([getattr(rates, name) for rates in heard])) for name in ("cer", "wer")}


def _keys(candidates: Sequence[Candidate], sentences: Sequence[TestSentence], config: SpeechConfig) -> list[str]:
    return [key_of(candidate, sentence, config) for candidate in candidates for sentence in sentences]
