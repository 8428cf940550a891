"""Small ablations of training choices on the embedded voice: `python -m benchmarks.ablations --work FOLDER [ARM …]`.

Each arm is trained with several seeds on espeak-ng clips, in voices that the embedded voice was not trained on, and
speaks unseen sentences; the recogniser that checks texts counts the phone errors. Runs are short and use one thread,
so only large differences mean anything, and none of it says what XTTS v2 would do. Finished runs are kept in FOLDER,
so the command continues where it was stopped. `--table` prints the results so far.
"""

import argparse
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from tools.tiny_voice.audio import render
from tools.tiny_voice.corpus import read_sentences
from tools.tiny_voice.speakers import HELD_OUT, SPEAKERS, Speaker
from utils.config import SpeechConfig
from utils.core.batching import evenly_spaced
from utils.core.events import read_events
from utils.dataset.metadata import FILES, HEADER, format_row
from utils.evaluation.voice_scores import PhoneJudge, SpokenSentence, VoiceScorer
from utils.gpt_train import train_gpt
from utils.media import audio
from utils.media.rates import OUTPUT_RATE, RATE
from utils.recognition.phone_recogniser import EMBEDDED
from utils.speech.synthesizer import Caches, open_voice
from utils.xtts import checkpoints, vocabulary
from utils.xtts.language_packs import pack_for

CLIPS, EVAL_CLIPS, UPDATES, SENTENCES = 96, 12, 40, 12
SHORT, LONG = (1.0, 3.0), (3.0, 7.0)  # seconds
ENGLISH = (
    *("the boat came home before night", "she keeps seven goats near the river", "we eat bread and drink tea"),
    *("my brother reads a small book", "rain fell on the red roof", "open the door and come in"),
    *("the old man sold his lamp", "tell me where the market is", "a cold wind blows from the north"),
    *("they walk to school in the morning", "put the cups on the table", "his dog sleeps under the tree"),
    *("the bus stops at the corner", "children sing in the green field", "i will call you tomorrow"),
    *("this road leads to the lake", "give him water and some fruit", "the moon is bright tonight"),
)

# name of an arm: dataset, changed settings, number of sentences to speak, and the row a language token starts from
ARMS: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "another clip (default)": ("short", {"reference": "other_clip"}, 100, ""),
    "same clip": ("short", {"reference": "same_clip"}, 100, ""),
    "with long clips": ("mixed", {"reference": "other_clip"}, SENTENCES, ""),
    "embedding warm-up 20": ("short", {"embedding_warmup_steps": 20}, SENTENCES, ""),
    "text loss 0.1": ("short", {"text_loss_weight": 0.1}, SENTENCES, ""),
    "half of the layers frozen": ("short", {"freeze_first_n_gpt_layers": 3}, SENTENCES, ""),
    "conditioning frozen": ("short", {"freeze_conditioning": True}, SENTENCES, ""),
    "token from [it]": ("latin", {"language": "ti"}, SENTENCES, "[it]"),
    "token from [am]": ("latin", {"language": "ti"}, SENTENCES, "[am]"),
    "token from the mean": ("latin", {"language": "ti"}, SENTENCES, "[none]"),
    "replay 0 %": ("english", {"language": "en", "replay_share": 0.0}, 0, ""),
    "replay 5 %": ("english", {"language": "en", "replay_share": 0.05}, 0, ""),
    "replay 20 %": ("english", {"language": "en", "replay_share": 0.2}, 0, ""),
}


def spoken(
    texts: list[str], span: tuple[float, float], speakers: tuple[Speaker, ...]
) -> Iterator[tuple[str, Any, str]]:
    """Speak texts whose clips have such a length, each speaker in turn."""
    for number, text in enumerate(texts):
        speaker = speakers[number % len(speakers)]
        samples = render(text, speaker)
        if span[0] <= samples.size / RATE <= span[1]:
            yield text, samples, speaker.name


def as_latin(text: str) -> str:
    """Write Amharic as the model reads it, because a new language is read as it is written."""
    pack = pack_for("am")
    return pack.render("", pack.phonemize(pack.normalize(text)), "latin")


def write_dataset(folder: Path, name: str) -> Path:
    """Write lists and clips in the layout of plain coqui-tts."""
    folder = folder / "data" / name
    if (folder / FILES["eval"]).exists():
        return folder
    sentences = read_sentences()
    texts = {"train": sentences["train"], "eval": sentences["eval"][1::2]}  # the others are spoken
    (folder / "wavs").mkdir(parents=True, exist_ok=True)
    for split, count in (("train", CLIPS), ("eval", EVAL_CLIPS)):
        lines = [HEADER]
        spans = [(SHORT, count // 2), (LONG, count // 2)] if name == "mixed" else [(SHORT, count)]
        for span, wanted in spans:
            drawn = evenly_spaced(texts[split], 12 * wanted)
            if name == "english":
                drawn = list(ENGLISH[:14] if split == "train" else ENGLISH[14:]) * 12
            clips = spoken(drawn, span, SPEAKERS[:3] if name == "known" else HELD_OUT)
            for number, (text, samples, speaker) in zip(range(wanted), clips, strict=False):
                written = f"wavs/{split}-{span[0]:g}-{number}.wav"
                audio.save(folder / written, samples, RATE)
                lines.append(format_row(written, as_latin(text) if name == "latin" else text, speaker))
        (folder / FILES[split]).write_text("\n".join([*lines, ""]), "utf-8")  # type: ignore[index]
    (folder / "lang.txt").write_text({"latin": "ti\n", "english": "en\n"}.get(name, "am\n"), "utf-8")
    return folder


def run(work: Path, arm: str, seed: int) -> dict[str, Any]:
    """Train one arm, let its last checkpoint speak, and return its figures."""
    name, changes, count, row = ARMS[arm]
    data, output = write_dataset(work, name), work / "runs" / f"{arm.replace(' ', '-')}-{seed}"
    settings: dict[str, Any] = {
        "version": "tiny",
        "language": "am",
        "output_path": str(output),
        "seed": seed,
        "max_steps": UPDATES,
        "train_csv": str(data / FILES["train"]),
        "eval_csv": str(data / FILES["eval"]),
        "num_epochs": 1000,
        "batch_size": 8,
        "grad_acumm": 1,
        "learning_rate": 3e-4,
        "warmup_steps": 4,
        "eval_step": UPDATES,
        "enable_mixed_precision": False,
        "sample_texts": "-",
        "score_sentences": 0,
        "num_workers": 0,
        **changes,
    }
    if arm.startswith("replay"):
        settings["replay_data"] = str(write_dataset(work, "known"))
    with mock.patch.object(vocabulary, "NEAREST_LANGUAGE", row or vocabulary.NEAREST_LANGUAGE):
        result = train_gpt(**settings, progress=False)
    events = [event for event in read_events(result.run / "events.jsonl").events if event["kind"] == "evaluation"]
    losses = {key: value for key, value in events[-1].items() if key.startswith("loss")}
    before = {f"{key} before": value for key, value in events[0].items() if key.startswith("loss")}
    scores = speak(work, result.run, str(settings["language"]), count) if count else {}
    return {"arm": arm, "seed": seed, **losses, **before, **scores, "seconds": round(result.seconds)}


def speak(work: Path, run_folder: Path, language: str, count: int) -> dict[str, float]:
    """Score sentences that were neither trained on nor evaluated; a run of English says the Amharic ones."""
    speaker = HELD_OUT[0]
    folder = work / "data" / "heard"
    folder.mkdir(parents=True, exist_ok=True)
    texts, recordings = evenly_spaced(read_sentences()["eval"][0::2], count), []
    for number, text in enumerate(texts):
        recordings.append(folder / f"{count}-{number}.wav")
        if not recordings[-1].exists():
            audio.save(recordings[-1], audio.resample(render(text, speaker), RATE, OUTPUT_RATE), OUTPUT_RATE)
    reference = max(recordings, key=lambda path: path.stat().st_size)
    written = [as_latin(text) for text in texts] if language == "ti" else texts
    model = open_voice(checkpoints.find(run_folder, "newest").folder, "cpu", "fp32", caches=Caches(work / "voices"))
    asked = "ti" if language == "ti" else "am"
    config = SpeechConfig(reference=str(reference), language=asked, tries=1, batch_size=8)
    heard = [
        SpokenSentence(text, speech.samples, reference, recording, speech.flags)
        for text, speech, recording in zip(texts, model.speak_many(written, config), recordings, strict=True)
    ]
    return VoiceScorer("am", PhoneJudge(EMBEDDED))(heard)


def table(rows: list[dict[str, Any]]) -> str:
    """Lay the means and deviations over the seeds out as Markdown."""
    heads = list(dict.fromkeys(key for row in rows for key in row if key not in {"arm", "seed"}))
    lines = [["arm", "seeds", *heads], ["---"] * (len(heads) + 2)]
    for arm in dict.fromkeys(row["arm"] for row in rows):
        mine = [row for row in rows if row["arm"] == arm]
        cells = []
        for head in heads:
            values = [row[head] for row in mine if row.get(head) is not None]
            cells.append(f"{np.mean(values):.3f} ± {np.std(values):.3f}" if values else "")
        lines.append([arm, str(len(mine)), *cells])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    """Run what is missing, one line of JSON each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arms", nargs="*", default=[], help=f"default: all of {', '.join(ARMS)}".replace("%", "%%"))
    parser.add_argument("--work", type=Path, required=True, help="folder for clips, runs and results")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--table", action="store_true", help="print the results and run nothing")
    arguments = parser.parse_args()
    log = arguments.work / "results.jsonl"
    rows = [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.is_file() else []
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    for seed in range(0 if arguments.table else arguments.seeds):
        for arm in arguments.arms or ARMS:
            if not any((row["arm"], row["seed"]) == (arm, seed) for row in rows):
                rows.append(run(arguments.work, arm, seed))
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[-1], ensure_ascii=False) + "\n")
                print(rows[-1], flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
