"""What the demo's fine-tuning does for each held-out speaker, heard by independent judges."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tools.tiny_voice.corpus import read_sentences
from tools.tiny_voice.judges import Heard, Similarity, pitch_distance, rendered, speak
from tools.tiny_voice.phone_judge import PhoneJudge
from tools.tiny_voice.progress import Progress
from tools.tiny_voice.sample import write_recording
from tools.tiny_voice.speakers import HELD_OUT, Speaker
from utils.cli import demo
from utils.core.batching import evenly_spaced
from utils.media.rates import OUTPUT_RATE
from utils.speech.synthesizer import Caches, open_voice
from utils.studio import projects, sample_project
from utils.studio.paths import Project

MOVED = 0.6  # share of the way to the speaker's pitch
NEAR = 2.0  # semitones


def judge_fine_tunings(
    model: Path, work: Path, settings: Path, sentences: int, versions: int, progress: Progress
) -> dict[str, dict[str, Any]]:
    """Fine-tune the voice on each held-out speaker as the demo does, and measure unseen sentences before and after."""
    phones = PhoneJudge.open(work / "phones", progress)
    texts = evenly_spaced(read_sentences()["eval"], sentences)

    def spoken(folder: Path, speaker: Speaker, reference: Path) -> list[Heard]:
        voice = open_voice(folder, "auto", "auto", caches=Caches(work / "voices"))
        return speak(voice, texts, {speaker.name: reference}, progress, versions)[0]

    return {speaker.name: _judge(speaker, model.resolve(), work, settings, phones, spoken) for speaker in HELD_OUT}


def _judge(
    speaker: Speaker,
    model: Path,
    work: Path,
    settings: Path,
    phones: PhoneJudge,
    spoken: Callable[[Path, Speaker, Path], list[Heard]],
) -> dict[str, Any]:
    project = _project(speaker, work / "fine-tuned")
    config = demo.settings(settings, project).model_copy(update={"custom_model": str(model)})
    demo.prepare_and_train(project, config)
    reference = demo.reference_clip(project)
    said = [spoken(folder, speaker, reference) for folder in (model, project.ready)]
    real = [Heard(one.text, speaker.name, rendered(one.text, speaker.name)) for one in said[0]]
    similarity = Similarity({speaker.name: reference})
    likeness = [similarity.each(sentences) for sentences in said]
    before, after = (_figures(sentences, real, phones) for sentences in said)
    closer = float(np.mean(np.array(likeness[1]) > np.array(likeness[0]))) if likeness[0] else None
    moved = 1 - after["pitch_distance"] / max(before["pitch_distance"], 1e-6)
    return {
        "before": before | {"similarity": _mean(likeness[0])},
        "after": after | {"similarity": _mean(likeness[1])},
        "more_similar": closer,
        "pitch_is_near": after["pitch_distance"] <= NEAR or moved >= MOVED,
    }


def _project(speaker: Speaker, output: Path) -> Project:
    """Make a project of a speaker's recording; an earlier one goes to the trash."""
    if (output / speaker.name).exists():
        projects.delete(projects.find(speaker.name, output), output)
    project = projects.create(speaker.name, output)
    write_recording(project.dataset / sample_project.UPLOADS, speaker)
    return project


def _figures(said: Sequence[Heard], real: Sequence[Heard], phones: PhoneJudge) -> dict[str, Any]:
    wrong = np.array([phones.errors(one.text, one.samples, OUTPUT_RATE) for one in said])
    distances = [pitch_distance(one, other) for one, other in zip(said, real, strict=True)]
    return {
        "phone_error": round(float(wrong[:, 0].sum() / wrong[:, 1].sum()), 4),
        "pitch_distance": round(float(np.nanmedian(distances)), 2),
    }


def _mean(values: Sequence[float]) -> float | None:
    return round(float(np.mean(values)), 4) if values else None
