"""Files that the program writes for itself: what it then does must be the same, or the damage is named."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from tests.soak.formats import DATASET, MODEL, RUN, Format, describe
from tests.studio.test_takes import make_take
from tests.xtts.exporting import finished_run, trained_state
from utils.config import TrainConfig
from utils.core.errors import FileDamagedError
from utils.core.events import iter_events
from utils.core.facts import Fact, LineDamaged, LinesMissing, from_json, to_json
from utils.core.storage import make_folder, write_document
from utils.dataset import features, metadata, sources
from utils.dataset.database import DATABASE
from utils.dataset.store import Store, View
from utils.evaluation import report
from utils.evaluation.report import EvaluationReport
from utils.integrations.corpora import note_corpus
from utils.speech import precision
from utils.speech.facts import CharactersSkipped
from utils.speech.precision import Measurement
from utils.speech.voices import SUFFIX, VoiceCache
from utils.studio import page_settings, runs, takes, uploads
from utils.studio.page_settings import PageSettings
from utils.studio.paths import SETTINGS, Project
from utils.studio.run_history import HistoryCache
from utils.studio.runs import Run
from utils.training import facts as training
from utils.training import preparation
from utils.ui.tabs.training.render import comparison_table
from utils.xtts import certificate, checkpoints, hub, model
from utils.xtts.certificate import Certificate, Check
from utils.xtts.files import DIGESTS_FILE, MODEL_FILE, SETTINGS_FILE, VOCABULARY_FILE, verify_folder
from utils.xtts.tokenizer import Tokenizer, prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

EXPORT = f"export/{Project(Path()).ready.name}"
STATE, READING = "state", f"{RUN}/{preparation.TOKENIZER_FOLDER}"
CHECKPOINT = f"export/runs/20260101-120000-train/{checkpoints.FOLDER}/step_7"
INPUTS = f"{DATASET}/recordings/{uploads.INPUTS}"
TAKE = f"{takes.FOLDER}/1/{takes.METADATA}"
VOICE = {"voice": torch.linspace(-1, 1, 64)}
KEYS = ["a", "b", "c"]


def refuse(facts: list[Fact]) -> None:
    """Count as refused what names the damage."""
    for fact in facts:
        if isinstance(fact, LineDamaged | LinesMissing):
            raise FileDamagedError(Path(fact.kind))


def read_database(path: Path) -> str:
    store = Store(path.parent)
    shown = [store.page(View(status=status), 1) for status in ("kept", "excluded")]
    return describe(
        [store.read(), shown, store.totals(), store.reasons(), store.step(undo=True), store.step(undo=False)]
    )


def read_history(path: Path) -> str:
    """Show a run, as the training tab does, and follow it, as the command line does."""
    run = Run(path.parent)
    history = HistoryCache().read(run)
    refuse([*history.warnings, *map(from_json, iter_events(path))])
    return describe([comparison_table([run, run], [history, history]), list(iter_events(path))])


def read_run_state(path: Path) -> str:
    """Look at a run as the page does, and read its state as its child does."""
    run = Run(path.parent)
    run.current_state()
    runs.list_runs(Project(path.parents[2]))
    return describe(run.read_state())


def read_shards(path: Path) -> str:
    columns, bulky = (features.AUDIO, ["mel"]) if path.parent.name == "audio-0" else (features.TEXT, [])
    shards = features.Shards(path.parent, columns, bulky)
    for damage in shards.repair():
        raise damage
    lists = [name for name in columns if name != "samples"]
    return describe([[shards.row(key, name).tolist() for name in lists] for key in KEYS])


def read_take(path: Path) -> str:
    """List the takes and open one, as the inference tab does."""
    project = Project(path.parents[2])
    found = [*takes.newest(project), takes.load(project, path.parent.name)]
    return describe([(sorted(take.settings.items()), replace(take, settings={})) for take in found])


def read_export(path: Path) -> str:
    verify_folder(path.parent)
    weights = model.read_state_dict(path.parent / MODEL_FILE).values()
    tokenizer = Tokenizer.load(path.parent)
    hashes = [hashlib.sha256(tensor.numpy().tobytes()).hexdigest() for tensor in weights]
    return describe([hashes, model.read_config(path.parent), tokenizer.settings, tokenizer.vocabulary.hash])


def read_texts(path: Path) -> str:
    checkpoints.verify(path.parent, checkpoints.MODEL)
    tokenizer = Tokenizer.load(path.parent)
    return describe([tokenizer.settings, tokenizer.vocabulary.hash])


def read_codec(path: Path) -> str:
    class Encoder:
        fingerprint = "f"

    preparation.audit_codec(path.parent, Encoder(), None, None, lambda _: None)  # type: ignore[arg-type]
    return "the same codec"


def read_tokenizer(path: Path) -> str:
    loaded = preparation.fixed_tokenizer(TrainConfig(language="am"), path.parents[1], None, [])  # type: ignore[arg-type]
    return describe([loaded.settings, loaded.vocabulary.hash])


def value_or(otherwise: object, read: Callable[[Path], object]) -> Callable[[Path], str]:
    """Read what is made again, or asked for again, when it is damaged."""
    return lambda path: str(read(path) or otherwise)


MEASURED = Measurement({"fp32": 1.0}, {"fp32": 2.0}, "2026-01-01")
CERTIFICATE = Certificate(certificate.machine("cpu"), "2026-01-01", (Check("a", passed=True, detail="same"),))
OWNED = tuple(
    Format(name, file, read, is_hashed=True)
    for name, file, read in (
        ("clips.db", f"{DATASET}/{DATABASE}", read_database),
        ("clips.digest.json", f"{DATASET}/clips.digest.json", lambda path: read_database(path.with_name(DATABASE))),
        ("corpora", f"{DATASET}/{sources.USED_CORPORA}", lambda path: sources.used_corpora(path.parent)),
        ("audio features", f"{DATASET}/features/audio-0/000000.arrow", read_shards),
        ("text features", f"{DATASET}/features/text-0/000000.arrow", read_shards),
        ("verified features", f"{DATASET}/features/audio-0/{features.VERIFIED}",
         lambda path: read_shards(path.with_name("000000.arrow"))),
        ("history", f"{RUN}/events.jsonl", read_history),
        ("state.json", f"{RUN}/state.json", read_run_state),
        ("config.yaml", f"{RUN}/config.yaml", TrainConfig.load_own),
        ("clips.json", f"{RUN}/{metadata.RUN_CLIPS}",
         lambda path: describe(metadata.clips_of_run(path.parent, TrainConfig(), path.parent))),
        ("codec.json", f"{RUN}/{preparation.CODEC_FILE}", read_codec),
        ("run vocabulary", f"{READING}/{VOCABULARY_FILE}", read_tokenizer),
        ("run text settings", f"{READING}/{SETTINGS_FILE}", read_tokenizer),
        ("scores", f"{RUN}/{checkpoints.SAMPLES}/step_3/{checkpoints.SCORES}",
         lambda path: checkpoints.read_scores(path.parents[2], 3)),
        ("exported weights", f"{EXPORT}/{MODEL_FILE}", read_export),
        ("exported vocabulary", f"{EXPORT}/{VOCABULARY_FILE}", read_export),
        ("exported text settings", f"{EXPORT}/{SETTINGS_FILE}", read_export),
        ("exported digests", f"{EXPORT}/{DIGESTS_FILE}", read_export),
        ("checkpoint vocabulary", f"{CHECKPOINT}/{VOCABULARY_FILE}", read_texts),
        ("checkpoint text settings", f"{CHECKPOINT}/{SETTINGS_FILE}", read_texts),
        ("take", TAKE, read_take),
        ("inputs", INPUTS, lambda path: uploads.read_inputs(Project(path.parents[2]))),
        ("queue", "queue/runs/.queue.json", lambda path: runs.watch_queue(Project(path.parents[1]))),
        ("page.yaml", f"{SETTINGS.name}/page.yaml", PageSettings.load_own),
        ("consent", f"{STATE}/licence.json", hub.require_licence),
        ("certificate", f"{STATE}/gpu.json", value_or(CERTIFICATE, lambda path: certificate.read("cpu", path))),
        ("speeds", f"{STATE}/speeds.json",
         lambda path: precision._read(path).get("m", MEASURED)),
        ("voice", f"{STATE}/v{SUFFIX}",
         lambda path: describe(VoiceCache(path.parent).get("v", {"voice": (64,)}) or VOICE)),
        ("report", "report/report.json", lambda path: describe(report.load(path.parent))),
    )
)  # fmt: skip


def write_owned(folder: Path) -> None:
    """Add to the specimens what the program writes for itself."""
    base, dataset, run = folder / MODEL, folder / DATASET, Run(folder / RUN)
    tokenizer = prepare_tokenizer(Vocabulary.load(base / VOCABULARY_FILE), "am", texts=["ሰላም"])
    write_features(dataset)
    metadata.write_lists(dataset)
    note_corpus("fleurs", dataset)
    run.config.write_text(TrainConfig(version="tiny").to_signed_yaml(), encoding="utf-8")
    metadata.store_clips_of_run(run.folder, TrainConfig(), metadata.read_clips(TrainConfig(), dataset))
    write_document(run.folder / preparation.CODEC_FILE, to_json(training.Codec("f")))
    preparation.fixed_tokenizer(TrainConfig(language="am"), run.folder, preparation.BaseModel(base, ""), ["ሰላም"])
    checkpoints.write_scores(run.folder, 3, {"composite": 0.5})
    finished_run(folder / "export", base, tokenizer, trained_state(base, tokenizer))
    take = make_take(Project(folder), "ሰላም።", notes=(CharactersSkipped("☂"),))
    takes.take_folder(Project(folder), take.name).rename((folder / TAKE).parent)
    uploads.add_input(Project(folder), "a.wav|b.wav")
    for name in ("queue/runs", "report"):
        make_folder(folder / name)
    write_document(folder / "queue/runs/.queue.json", {"pid": 1, "identity": "x"})
    page_settings.write(PageSettings(kept_days=9), folder)
    write_state(folder / STATE)
    write_document(folder / STATE / "speeds.json", {"m": vars(MEASURED)})
    report.save(EvaluationReport(folder / "report", (), ("a",)))


def write_state(folder: Path) -> None:
    hub.accept_licence(folder / "licence.json", "A")
    CERTIFICATE.write(folder / "gpu.json")
    VoiceCache(folder).put("v", VOICE)


def write_features(dataset: Path) -> None:
    audio_rows = {"samples": np.arange(3), "codes": [np.arange(9)] * 3, "mel": [np.arange(800) / 100] * 3}
    for name, columns, rows in (
        ("audio-0", features.AUDIO, audio_rows),
        ("text-0", features.TEXT, {"ids": [np.arange(9)] * 3}),
    ):
        features.Shards(dataset / features.FOLDER / name, columns, ["mel"]).append(KEYS, rows)  # type: ignore[arg-type]
