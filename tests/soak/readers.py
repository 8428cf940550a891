"""The formats of files, each with the function by which the product reads it."""

from pathlib import Path

from tests.soak.fuzzing import Format
from utils.config import DatasetConfig, TrainConfig
from utils.core.errors import RunError
from utils.core.events import format_event, iter_events, read_tail
from utils.core.paths import Project
from utils.dataset import editor, metadata, queries, subtitles, text_files
from utils.dataset.metadata import FILES
from utils.dataset.queries import View
from utils.dataset.store import DATABASE, MANIFEST, RECORDINGS, Store, read_1_0
from utils.media import audio
from utils.runs import Run, list_runs
from utils.runs.job import Job
from utils.training import preparation, resume_state
from utils.xtts import checkpoints
from utils.xtts.files import CONFIG_FILE, MODEL_FILE, SETTINGS_FILE, TINY_RANDOM, VOCABULARY_FILE
from utils.xtts.model import read_config, read_state_dict
from utils.xtts.tensors import read_tensors
from utils.xtts.tokenizer import Tokenizer, prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

LENGTH = 40.0  # seconds of the recording that the subtitles belong to
TEXT = "ሰላም፣ 3 ልጆች ናቸው።"


def database(path: Path) -> object:
    """Read a dataset, undo its last edit, and read a page of it."""
    store = Store(path.parent)
    return store.read(), editor.undo(path.parent), queries.page(store, View(), 1)


def old_dataset(path: Path) -> object:
    return read_1_0(path.parent)


def lists(path: Path) -> object:
    read = text_files.read_listing(path)
    return read, metadata.read_clips(TrainConfig(), Project(path.parent.parent))


def cues(path: Path) -> object:
    return subtitles.fit_to_recording(subtitles.read_cues(path), LENGTH, path.name)


def sound(path: Path) -> object:
    info = audio.probe(path)
    return info, audio.load(path, 16_000).size, audio.load(path, 24_000, 0.1, 0.2).size


def vocabulary(path: Path) -> object:
    loaded = Vocabulary.load(path)
    taught = prepare_tokenizer(loaded, "am", texts=[TEXT])
    return loaded.size, loaded.hash, loaded.special, taught.tokenize(TEXT, "am")


def model_config(path: Path) -> object:
    return read_config(path.parent)


def reading(path: Path) -> object:
    return Tokenizer.load(path.parent).tokenize(TEXT, "am")


def events(path: Path) -> object:
    return [format_event(event) for event in iter_events(path)], read_tail(path)


def state(path: Path) -> object:
    """Look at a run as the page does, and read its state as its child does."""
    run = Run(path.parent)
    return run.current_state(), list_runs(Project(path.parents[2])), run.read_state()


def checkpoint(path: Path) -> object:
    """List the checkpoints of a run, open the newest, and find the best."""
    run = path.parents[2] if path.parent.name.startswith(checkpoints.PREFIX) else path.parents[1]
    listed = checkpoints.list_checkpoints(run)
    for damaged in listed:
        if damaged.error:
            raise RunError(damaged.error, hint="Choose another checkpoint.")
    return listed, checkpoints.read_state(checkpoints.find(run, "newest").folder), checkpoints.find(run, "best")


def resume(path: Path) -> object:
    resume_state.can_resume(path.parent)
    return resume_state.load(path.parent)


def base(path: Path) -> object:
    return preparation.find_base(Job(Run(path.parent)), TrainConfig(version=TINY_RANDOM))


RUN, DATASET, OLD_DATASET, MODEL = "runs/1-train", "dataset", "dataset_1_0", "model"
RESUME, CHECKPOINT = f"{RUN}/{checkpoints.RESUME_FOLDER}", f"{RUN}/{checkpoints.FOLDER}/step_3"
CHECKPOINT_FILES = (f"{RUN}/{checkpoints.FOLDER}/**/*",)
FORMATS: tuple[Format, ...] = (
    Format("clips.db", f"{DATASET}/{DATABASE}", database),
    Format("manifest of 1.0", f"{OLD_DATASET}/{MANIFEST}", old_dataset, (f"{OLD_DATASET}/{RECORDINGS}",)),
    Format("recordings of 1.0", f"{OLD_DATASET}/{RECORDINGS}", old_dataset, (f"{OLD_DATASET}/{MANIFEST}",)),
    Format("list of clips", f"{DATASET}/{FILES['train']}", lists, (f"{DATASET}/**/*",)),
    Format("settings YAML", "settings/train.yaml", TrainConfig.load),
    Format("dataset YAML", "settings/dataset.yaml", DatasetConfig.load),
    Format("preset YAML", "settings/preset.yaml", TrainConfig.load),
    Format("SRT", "subtitles/a.srt", cues),
    Format("VTT", "subtitles/a.vtt", cues),
    Format("ASS", "subtitles/a.ass", cues),
    Format("wav", "sounds/a.wav", sound),
    Format("wav of floats", "sounds/float.wav", sound),
    Format("flac", "sounds/a.flac", sound),
    Format("ogg", "sounds/a.ogg", sound),
    Format("mp3", "sounds/a.mp3", sound),
    Format("vocab.json", f"{MODEL}/{VOCABULARY_FILE}", vocabulary),
    Format("text.json", f"{CHECKPOINT}/{SETTINGS_FILE}", reading, CHECKPOINT_FILES),
    Format("config.json", f"{MODEL}/{CONFIG_FILE}", model_config),
    Format("model.pth", f"{MODEL}/{MODEL_FILE}", read_state_dict, is_lazy=True),
    Format("safetensors", f"{RUN}/loose.safetensors", read_tensors),
    Format("events.jsonl", f"{RUN}/events.jsonl", events),
    Format("state.json", f"{RUN}/state.json", state),
    Format("base.json", f"{RUN}/{preparation.BASE_FILE}", base, (f"{RUN}/*.json",)),
    Format("checkpoint.json", f"{CHECKPOINT}/{checkpoints.MANIFEST}", checkpoint, CHECKPOINT_FILES),
    Format("checkpoint weights", f"{CHECKPOINT}/{checkpoints.MODEL}", checkpoint, CHECKPOINT_FILES),
    Format("best.json", f"{RUN}/{checkpoints.FOLDER}/{checkpoints.BEST}", checkpoint, CHECKPOINT_FILES),
    Format("resume state", f"{RESUME}/{checkpoints.RESUME_STATE}", resume, (f"{RESUME}/*",)),
    Format("resume optimizer", f"{RESUME}/{resume_state.OPTIMIZER_TREE}", resume, (f"{RESUME}/*",)),
    Format("resume weights", f"{RESUME}/{resume_state.WEIGHTS}", resume, (f"{RESUME}/*",)),
)
