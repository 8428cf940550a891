"""The same sentences spoken at every checkpoint, so that a person hears where a run is going."""

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from utils.config import SEPARATOR, TrainConfig
from utils.core.errors import AmharicTtsError
from utils.core.storage import make_folder
from utils.dataset.clip_lists import Material
from utils.media import audio
from utils.media.rates import OUTPUT_RATE, RATE
from utils.runs.job import Job
from utils.training.preparation import BaseModel
from utils.training.sample_speaker import Speaker
from utils.training.speedups import kernels
from utils.xtts.checkpoints import PREFIX, SAMPLES
from utils.xtts.files import TINY_RANDOM
from utils.xtts.tokenizer import Tokenizer

NONE = "-"
SENTENCES = 3
REFERENCE_SECONDS = 6.0
MOST_SECONDS = 12.0
RANDOM_SECONDS = 3.0  # it does not find the end by itself, and its vocoder is as large as any


@dataclass
class Listening:
    """Speaks the sentences of a run.

    Attributes:
        job: Whose folder takes the sound, and whose events tell of it.
        gpt: coqui's GPT, as it is at that moment.
        speaker: The rest of the model.
        texts: What is said.
        language: Its language.
        reference: A clip of the evaluation list.
        seed: The same for every checkpoint.
        most_seconds: Where a sentence is cut that does not end by itself.
    """

    job: Job
    gpt: nn.Module
    speaker: Speaker
    texts: tuple[str, ...]
    language: str
    reference: Path
    seed: int
    most_seconds: float

    def __call__(self, step: int) -> None:
        """Speak all sentences; a failure is told and loses nothing but the sound."""
        folder = self.job.run.folder / SAMPLES / f"{PREFIX}{step}"
        make_folder(folder)
        for number, text in enumerate(self.texts, 1):
            try:
                path = self._speak(text, folder / f"{number}.wav")
            except (AmharicTtsError, RuntimeError) as error:
                self.job.events.emit("warning", message=f"A sentence could not be spoken: {error}", text=text)
                continue
            self.job.events.emit("sample", step=step, text=text, file=str(path))

    def _speak(self, text: str, path: Path) -> Path:
        heard = audio.load(self.reference, RATE, end=REFERENCE_SECONDS)
        with kernels.every_kernel():  # the one chosen for training may not know the masks of speaking
            speech = self.speaker.speak(
                self.gpt, text, self.language, heard, seconds_at_most=self.most_seconds, seed=self.seed
            )
        audio.save(path, speech.samples, OUTPUT_RATE)
        return path


def make_listening(
    job: Job, config: TrainConfig, gpt: nn.Module, base: BaseModel, reading: Tokenizer, material: Material
) -> Listening:
    """Choose the sentences and the voice: the settings' sentences, or the first ones of the evaluation list."""
    if config.sample_texts.strip() == NONE:
        texts: tuple[str, ...] = ()
    elif config.sample_texts.strip():
        texts = tuple(text.strip() for text in config.sample_texts.split(SEPARATOR) if text.strip())
    else:
        texts = tuple(dict.fromkeys(clip.text for clip in material.held_back))[:SENTENCES]
    most = RANDOM_SECONDS if config.version == TINY_RANDOM and not config.custom_model else MOST_SECONDS
    return Listening(job, gpt, Speaker(base.folder, reading), texts, config.language, material.voice, config.seed, most)
