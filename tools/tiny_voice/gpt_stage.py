"""The GPT stage: two runs of this project's own training, short pieces first and then whole sentences."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tools.tiny_voice.codes_stage import LISTS, clips_of, store_key
from tools.tiny_voice.progress import Progress
from tools.tiny_voice.recipe import Gpt, Lesson
from tools.tiny_voice.stages import Workshop
from tools.tiny_voice.training_loop import CURVE
from utils import runs
from utils.config import TrainConfig
from utils.core.errors import RunError
from utils.core.events import Event, EventLog, iter_events
from utils.core.folders import link_or_copy, replace_folder
from utils.core.languages import AMHARIC
from utils.core.paths import Project
from utils.core.storage import write_atomically
from utils.dataset.features import AUDIO, FOLDER
from utils.dataset.shards import Shards
from utils.runs import Run, Status
from utils.runs.job import Job
from utils.training.checkpoint_samples import NONE
from utils.xtts.files import DVAE_FILE, MEL_FILE
from utils.xtts.from_scratch import Size, begun_gpt, new_config, write_config, write_speakers, write_weights
from utils.xtts.narrow import Width, new_vocoder, widened
from utils.xtts.random_vocabulary import small_vocabulary
from utils.xtts.tokenizer import prepare_tokenizer

BLANK = "blank"  # folder of the model that nothing was taught yet
SAMPLED = 500  # clips that the pace of speech is measured on
SHOWN = 100  # points of the curve of a lesson


def teach(shop: Workshop) -> dict[str, Any]:
    """Give both lessons and return what came of them."""
    base = _blank(shop)
    found: dict[str, Any] = {}
    for name, lesson in (("phrases", shop.recipe.gpt.phrases), ("sentences", shop.recipe.gpt.sentences)):
        project = Project(shop.folder("gpt") / name)
        if not project.ready.is_dir():
            _learn(project, config_of(shop, name, lesson, base), shop.progress(f"gpt, {name}"))
        found[name] = _told(project)
        base = project.ready
    return found


def taught(shop: Workshop) -> Path:
    """Return the folder of the GPT after the last lesson."""
    return Project(shop.folder("gpt") / "sentences").ready


def config_of(shop: Workshop, name: str, lesson: Lesson, base: Path) -> TrainConfig:
    """Return the settings of a lesson."""
    settings: Gpt = shop.recipe.gpt
    train, judged = (str(shop.folder("audio") / path) for path in LISTS[name])
    return TrainConfig(
        custom_model=str(base),
        language=AMHARIC.code,
        train_csv=train,
        eval_csv=judged,
        output_path=str(shop.folder("gpt") / name),
        num_epochs=1000,
        max_steps=lesson.updates,
        batch_size=lesson.at_once,
        grad_acumm=max(1, lesson.clips // lesson.at_once),
        learning_rate=lesson.rate,
        warmup_steps=lesson.warmup,
        dropout=settings.dropout,
        attention_kernel="math" if shop.device == "cpu" else "auto",  # flash goes back slowly through short clips there
        mask_reference=False,  # it is another clip
        eval_step=settings.evaluate,
        save_step=settings.save,
        sample_texts=NONE,
        seed=settings.seed,
    )


def _blank(shop: Workshop) -> Path:
    """Write the model to begin with, unless it is there."""
    folder, dvae = shop.folder("gpt") / BLANK, shop.folder("dvae")
    if folder.is_dir():
        return folder
    gpt, codes = shop.recipe.gpt, shop.recipe.dvae.codes
    torch.manual_seed(gpt.seed)
    vocabulary = small_vocabulary()
    config = new_config(Size(gpt.layers, gpt.dim, gpt.heads, codes, heard=shop.recipe.codes.heard), vocabulary)
    vocoder = widened(
        new_vocoder(width := Width(gpt.dim, shop.recipe.vocoder.channels, shop.recipe.ears.filters)), width
    )
    stats = torch.load(dvae / MEL_FILE, weights_only=True)
    with replace_folder(folder) as new:
        write_config(new, config, vocabulary)
        write_weights(new, begun_gpt(config, vocabulary, _pace(shop)), vocoder, stats)
        write_speakers(new, {})
        link_or_copy(dvae / DVAE_FILE, new / DVAE_FILE)
    return folder


def _pace(shop: Workshop) -> float:
    """Measure how many tokens of text go with each code."""
    dataset = shop.folder("audio")
    clips = clips_of(dataset, "sentences").train[:SAMPLED]
    reading = prepare_tokenizer(small_vocabulary(), AMHARIC.code)
    shards = Shards(dataset / FOLDER / f"audio-{store_key(shop)}", AUDIO, bulky=["mel"])
    shards.open()
    tokens = sum(len(reading.encode(clip.text, AMHARIC.code)) for clip in clips)
    codes = sum((place := shards.find(clip.content)).columns["codes"].length(place.number) for clip in clips)
    return tokens / codes


def _learn(project: Project, config: TrainConfig, progress: Progress) -> None:
    """Do a lesson in this process, or go on with it where it was saved."""
    from utils.gpt_train import train

    run = _interrupted(project) or runs.create("train", config, project)
    failures: list[Exception] = []
    with Job(run) as job:  # it keeps an error to itself
        job.events.close()
        job.events = _Telling(run.events, progress)
        try:
            train(job, config)
        except Exception as error:
            failures.append(error)
            raise
    for failure in failures:
        raise failure
    if not project.ready.is_dir():
        raise RunError(f"{run.folder} ended without a best checkpoint.", hint="Delete this folder and begin again.")


def _interrupted(project: Project) -> Run | None:
    """Return the run that was begun and not finished."""
    run = next(iter(runs.list_runs(project)), None)
    if run is None or run.current_state().status is Status.FINISHED:
        return None
    run.stop_file.unlink(missing_ok=True)
    return run


class _Telling(EventLog):
    """Writes events, and tells those that a person waits for."""

    def __init__(self, path: Path, progress: Progress) -> None:
        super().__init__(path)
        self.progress = progress
        self.loss = ""

    def emit(self, kind: str, **fields: object) -> None:
        """Append one event and tell of it."""
        super().emit(kind, **fields)
        if kind == "train":
            self.loss = f"loss {fields.get('loss_audio', '')}"
        elif kind == "progress" and "seconds_left" in fields and "part" not in fields:
            done, total, left = (int(float(str(fields[name] or 0))) for name in ("step", "total", "seconds_left"))
            self.progress.at(done, total, left, self.loss)
        elif kind in {"evaluation", "warning", "resumed"}:
            self.progress.say(f"{kind} {fields.get('message') or fields.get('step')} {fields.get('loss_audio', '')}")


def _told(project: Project) -> dict[str, Any]:
    """Return the figures of a finished lesson and write its curve beside it."""
    run = runs.list_runs(project)[0]
    events = list(iter_events(run.events))
    judged = [_point(event) for event in events if event["kind"] == "evaluation"]
    trained = [_point(event) for event in events if event["kind"] == "train"]
    kept = [trained[int(place)] for place in np.unique(np.linspace(0, len(trained) - 1, SHOWN).astype(int))]
    write_atomically(project.root / CURVE, json.dumps({"unheard": judged, "trained": kept}))
    rates = [float(str(event["samples_per_second"])) for event in events if event["kind"] == "train"]
    best = min(judged[1:] or judged, key=lambda point: point["loss_audio"])
    return {
        "best": best,
        "first": judged[0],
        "updates": len(trained),
        "clips_per_second": round(float(np.median(rates)), 2),
    }


def _point(event: Event) -> dict[str, float]:
    names = ("step", "loss_audio", "loss_text")
    return {name: round(float(str(event[name])), 4) for name in names if name in event}
