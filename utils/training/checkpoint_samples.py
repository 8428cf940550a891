"""Speaks the same sentences at each evaluation, so that you can hear how a run develops, and for its scores.

The samples come from the checkpoint on disk through the same engine as all speech. They are what ``speak`` says with
that checkpoint and seed, and neither the model in training nor its random state is touched.
"""

from collections.abc import Callable
from pathlib import Path

from utils.config import SpeechConfig, TrainConfig, split_values
from utils.core.batching import evenly_spaced
from utils.core.errors import AmharicTtsError, explain
from utils.core.facts import Report
from utils.core.storage import make_folder
from utils.dataset.metadata import ClipLists
from utils.evaluation.voice_scores import SpokenSentence
from utils.speech import synthesizer
from utils.speech.synthesizer import Synthesizer
from utils.training.facts import Sample, SamplesFailed
from utils.xtts.checkpoints import checkpoint_folder, samples_folder
from utils.xtts.device import choose_device, free_memory, is_out_of_memory

OpenVoice = Callable[[Path, str, str], Synthesizer]  # a checkpoint, the device and the precision

NO_SAMPLES = "-"
SENTENCES = 3


class CheckpointSamples:
    """Speaks the sentences of the settings, or the first ones of the evaluation list.

    Others of that list are spoken only to be scored; their audio is not written.

    They are spoken with the voice of a clip of that list, on the device of the training if it has free memory.

    Args:
        config: Settings of the run.
        clips: Its clips.
        folder: Folder of the run, in which the samples are written.
        report: Called with each sample.
        open_voice: Opens a checkpoint to speak with.
        root: Folder that may be moved as a whole; recordings in it are reported by their path from there.
    """

    def __init__(
        self,
        config: TrainConfig,
        clips: ClipLists,
        folder: Path,
        report: Report,
        open_voice: OpenVoice = synthesizer.open_voice,
        root: Path | None = None,
    ) -> None:
        self.folder = folder
        self.device = choose_device(config.device)
        self.report = report
        self.open_voice = open_voice
        self.root = root or folder
        texts = list(dict.fromkeys(clip.text for clip in clips.eval))
        written = split_values(config.sample_texts)
        self.texts = [] if written == [NO_SAMPLES] else written or texts[:SENTENCES]
        dataset = clips.folder.relative_to(self.root) if clips.folder.is_relative_to(self.root) else clips.folder
        self.recordings = {clip.text: str(dataset / clip.audio) for clip in reversed(clips.clips)}
        self.scored = evenly_spaced(texts, config.score_sentences) if config.score_sentences else []
        self.speech = SpeechConfig(reference=str(clips.voice), language=config.language, seed=config.seed, tries=1)

    @property
    def is_speaking(self) -> bool:
        return bool(self.texts or self.scored)

    def speak(self, step: int) -> list[SpokenSentence]:
        """Speak all sentences with a checkpoint and return those to score; a failure does not stop the run."""
        spoken = []
        try:
            try:
                spoken = self._speak(step, self.device)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                free_memory()
                spoken = self._speak(step, "cpu")
        except (AmharicTtsError, RuntimeError) as error:
            self.report(SamplesFailed(step, explain(error)))
        free_memory()
        return spoken

    # Long because a sentence may be spoken to be heard, to be scored, or for both.
    def _speak(self, step: int, device: str) -> list[SpokenSentence]:
        voice = self.open_voice(checkpoint_folder(self.folder, step), device, "fp32" if device == "cpu" else "auto")
        folder = samples_folder(self.folder, step)
        make_folder(folder)
        scored = []
        for number, text in enumerate(dict.fromkeys([*self.texts, *self.scored]), 1):
            path = folder / f"{number}.wav"
            recording = self.recordings.get(text, "")  # of the same words
            try:
                speech = voice.speak(text, self.speech)
                if text in self.texts:
                    speech.save(path, title=text, model=voice.model.name)
            except AmharicTtsError as error:
                self.report(SamplesFailed(step, explain(error), text))
                continue
            if text in self.texts:
                self.report(Sample(step, text, str(path), recording))
            if text in self.scored:
                known = self.root / recording if recording else None
                scored.append(SpokenSentence(text, speech.samples, Path(self.speech.reference), known, speech.flags))
        return scored
