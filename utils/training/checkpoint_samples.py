"""Speaks the same sentences at each evaluation, so that you can hear how a run develops, and for its scores.

The samples come from the checkpoint on disk through the same engine as all speech. They are what ``speak`` says with
that checkpoint and seed, and neither the model in training nor its random state is touched.
"""

from pathlib import Path

import torch

from utils.config import SEPARATOR, SpeechConfig, TrainConfig
from utils.core.batching import evenly_spaced
from utils.core.errors import AmharicTtsError
from utils.core.storage import make_folder
from utils.dataset.metadata import ClipLists
from utils.evaluation.voice_scores import SpokenSentence
from utils.studio.job import Job
from utils.studio.loading import open_voice
from utils.xtts.checkpoints import PREFIX, SAMPLES, checkpoint_folder
from utils.xtts.device import free_memory

NO_SAMPLES = "-"
SENTENCES = 3


class CheckpointSamples:
    """The sample sentences of a run: those of the settings, or the first ones of the evaluation list.

    Others of that list are spoken only to be scored; their audio is not written.

    They are spoken with the voice of a clip of that list, on the device of the training if it has free memory.
    """

    def __init__(self, job: Job, config: TrainConfig, clips: ClipLists, device: torch.device) -> None:
        self.job = job  # receives the audio files and events
        texts = list(dict.fromkeys(clip.text for clip in clips.eval))
        self.texts = [text.strip() for text in config.sample_texts.split(SEPARATOR) if text.strip()]
        if self.texts == [NO_SAMPLES]:
            self.texts = []
        elif not self.texts:
            self.texts = texts[:SENTENCES]
        folder, root = clips.folder, job.run.project.root
        folder = folder.relative_to(root) if folder.is_relative_to(root) else folder  # the project may be moved
        self.recordings = {clip.text: str(folder / clip.audio) for clip in reversed(clips.clips)}
        self.scored = evenly_spaced(texts, config.score_sentences) if config.score_sentences else []
        self.device = "cuda" if device.type == "cuda" else "cpu"
        self.speech = SpeechConfig(reference=str(clips.voice), language=config.language, seed=config.seed, tries=1)

    @property
    def is_speaking(self) -> bool:
        return bool(self.texts or self.scored)

    def speak(self, step: int) -> list[SpokenSentence]:
        """Speak all sentences with a checkpoint and return those to score; a failure does not stop the run."""
        spoken: list[SpokenSentence] = []
        try:
            try:
                spoken = self._speak(step, self.device)
            except torch.OutOfMemoryError:
                free_memory()
                spoken = self._speak(step, "cpu")
        except (AmharicTtsError, RuntimeError) as error:
            self.job.events.emit("warning", message=f"The samples of step {step} could not be spoken: {error}")
        free_memory()
        return spoken

    def _speak(self, step: int, device: str) -> list[SpokenSentence]:
        run = self.job.run.folder
        config = SpeechConfig(
            model=str(checkpoint_folder(run, step)), device=device, precision="fp32" if device == "cpu" else "auto"
        )
        synthesizer = open_voice(config, run.parent.parent.parent)
        folder = run / SAMPLES / f"{PREFIX}{step}"
        make_folder(folder)
        scored = []
        for number, text in enumerate(dict.fromkeys([*self.texts, *self.scored]), 1):
            path = folder / f"{number}.wav"
            recording = self.recordings.get(text, "")  # of the same words
            try:
                speech = synthesizer.speak(text, self.speech)
                if text in self.texts:
                    speech.save(path, title=text, model=synthesizer.model.name)
            except AmharicTtsError as error:
                self.job.events.emit("warning", message=f"A sample could not be spoken: {error}", text=text)
                continue
            if text in self.texts:
                self.job.events.emit("sample", step=step, text=text, file=str(path), recording=recording)
            if text in self.scored:
                heard = Path(self.speech.reference)
                known = self.job.run.project.root / recording if recording else None
                scored.append(SpokenSentence(text, speech.samples, heard, known, speech.flags))
        return scored
