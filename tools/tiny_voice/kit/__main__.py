"""Train the voice from a pack: ``python -m tools.tiny_voice.kit PACK OUT``.

The clips are rendered first, then the GPT is trained, then the vocoder on its latents. OUT holds both in half
precision, their curves, and a summary. An interrupted training goes on from its state in the folder WORK.
"""

import argparse
import json
import shutil
import time
from pathlib import Path

import torch

from tools.tiny_voice.kit import gpt, vocoder
from tools.tiny_voice.kit.clips import Clips
from tools.tiny_voice.kit.clock import Training

BASE, VOICES = "gpt.pt", "voices.pt"
GPT, VOCODER = "gpt.trained.pt", "vocoder.trained.pt"


def main() -> None:
    """Read the arguments and train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pack", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--work", type=Path, help="folder of clips and states (default: OUT)")
    parser.add_argument("--seconds", type=float, default=540.0, help="for everything")
    parser.add_argument("--gpt-seconds", type=float, default=150.0)
    parser.add_argument("--vocoder-seconds", type=float, help="default: what is left of --seconds")
    parser.add_argument("--every", type=float, default=30.0, help="seconds between two saves")
    parser.add_argument("--clips", type=int, help="only so many (default: all)")
    parser.add_argument("--batch", type=int, default=64, help="clips of an update of the GPT")
    parser.add_argument("--crops", type=int, default=48, help="pieces of an update of the vocoder")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    arguments.work = arguments.work or arguments.out
    for folder in (arguments.out, arguments.work):
        folder.mkdir(parents=True, exist_ok=True)
    train(arguments)


def train(arguments: argparse.Namespace) -> None:
    """Render, train the GPT, train the vocoder, and write what came of it."""
    began = time.monotonic()
    pack, work, out, device = arguments.pack, arguments.work, arguments.out, torch.device(arguments.device)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    clips = Clips.load(pack, work, arguments.clips)
    summary = {"clips": len(clips.takes), "hours": round(len(clips.sound) / 22_050 / 3600, 2)}
    summary["rendered_in"] = round(time.monotonic() - began)
    print(json.dumps(summary), flush=True)
    voices = torch.load(pack / VOICES, map_location=device, weights_only=True)
    model = gpt.Gpt(torch.load(pack / BASE, weights_only=True)).to(device)
    lesson = gpt.Lesson(model, clips, voices["prompts"], arguments.batch)
    training = Training(work, "gpt", {"gpt": model}, {"gpt": gpt.RATE}, arguments.gpt_seconds, arguments.every)
    model = gpt.train(lesson, training, out / GPT)
    torch.manual_seed(0)
    generator = vocoder.Generator(voices["prompts"].shape[-1]).to(device)
    if (pack / VOCODER).is_file():  # what an earlier training left
        generator.load_state_dict(torch.load(pack / VOCODER, weights_only=True))
    found = gpt.latents(model, clips, voices["prompts"])
    pieces = vocoder.Lesson(generator, clips, found, voices["embeddings"], arguments.crops)
    seconds = arguments.vocoder_seconds or arguments.seconds - (time.monotonic() - began)
    vocoder.train(pieces, work, out / VOCODER, seconds, arguments.every)
    summary["seconds"] = round(time.monotonic() - began)
    (out / "summary.json").write_text(json.dumps(summary), "utf-8")
    for curve in work.glob("*.jsonl") if out != work else ():
        shutil.copyfile(curve, out / curve.name)


if __name__ == "__main__":
    main()
