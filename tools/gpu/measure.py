"""One part of the checks on a GPU: ``python -m tools.gpu.measure PART [--device cuda] [--toy]``.

Each finding is a line ``RESULT {json}``.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")  # as the product sets it for a training

import torch

if TYPE_CHECKING:
    from utils.config import TrainConfig
    from utils.speech.decoder import Decoder
    from utils.training.data_loader import Update
    from utils.training.model_size import ClipSize, ModelSize
    from utils.training.packing import PackedBatch
    from utils.training.probe import Probe
    from utils.training.step import StepResult

PARSER = argparse.ArgumentParser()
PARSER.add_argument("part")
PARSER.add_argument("--device", default="cuda")
PARSER.add_argument("--toy", action="store_true")
PARSER.add_argument("--seconds", type=float, default=1e9, help="stop beginning new rows after this time")
PARSER.add_argument("rest", nargs="*")
BEGAN = time.monotonic()


def report(what: str, **numbers: object) -> None:
    rounded = {k: round(v, 5) if isinstance(v, float) else v for k, v in numbers.items()}
    print("RESULT", json.dumps({"what": what, **rounded}), flush=True)


def attempt(what: str, work: Callable[[], None]) -> None:
    """Go on after a row that fails; its error is the result."""
    if time.monotonic() - BEGAN > ARGS.seconds:
        report(what, skipped="no time left")
        return
    try:
        work()
    except Exception as error:  # noqa: BLE001
        report(what, error=f"{type(error).__name__}: {str(error).splitlines()[0][:300] if str(error) else ''}")
    finally:
        import gc

        gc.collect()
        if CUDA:
            torch.cuda.empty_cache()


def wait() -> None:
    if CUDA:
        torch.cuda.synchronize()


def peak() -> float:
    return torch.cuda.max_memory_allocated() / 2**20 if CUDA else 0.0


def reserved() -> float:
    return torch.cuda.memory_reserved() / 2**20 if CUDA else 0.0


# --- versions ---


def versions() -> None:
    import platform

    import accelerate
    import numpy as np
    import onnxruntime
    import transformers

    known = {m.__name__: m.__version__ for m in (torch, transformers, accelerate, np, onnxruntime)}
    report("versions", python=platform.python_version(), **known)
    if not CUDA:
        return
    p: Any = torch.cuda.get_device_properties(0)
    cudnn: Any = torch.backends.cudnn
    report(
        "gpu",
        name=p.name,
        capability=f"{p.major}.{p.minor}",
        gib=p.total_memory / 2**30,
        cuda=torch.version.cuda,
        cudnn=cudnn.version(),
        free=torch.cuda.mem_get_info()[0] / 2**30,
    )
    from utils.training.speedups.attention import selected_kernel

    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        for dropout in (0.0, 0.1):
            report(
                "attention that torch selects",
                dtype=str(dtype),
                dropout=dropout,
                kernel=selected_kernel("cuda", dtype, 64, dropout=dropout, causal=True),
            )


# --- training ---

BASE: dict[str, Any] = {
    "enable_mixed_precision": True,
    "enable_sdpa": True,
    "enable_fused_optimizer": True,
    "enable_fused_gelu": True,
    "enable_tf32": True,
    "enable_grad_checkpoint": False,
    "use_compile": False,
    "enable_byte_dropout": False,
    "learning_rate": 1e-4,
    "dropout": 0.1,
}


def config_of(clips: int, **settings: Any) -> "TrainConfig":
    from utils.config import TrainConfig
    from utils.training.memory import changed
    from utils.training.update_checks import REFERENCE

    return changed(TrainConfig.load(REFERENCE), {**BASE, "batch_size": clips, **settings})


def probed(clips: int, **settings: Any) -> "AbstractContextManager[Probe]":
    """Build the product's own step with a random model."""
    from utils.training.probe import probe

    return probe(config_of(clips, **settings), sizes(), DEVICE)


def batch_of(step: "Probe", seconds: float, clips: int) -> "PackedBatch":
    from utils.training.model_size import random_batch

    return random_batch(step.tokens, clip_of(seconds), clips)


def update(batch: "PackedBatch") -> "Update":
    from utils.training.data_loader import Update

    return Update([batch], batch.text_count, batch.audio_count, batch.clips, 0)


def sizes() -> "ModelSize":
    from utils.training.model_size import ModelSize

    return ModelSize(2, 64, 4, text_rows=200) if ARGS.toy else ModelSize()


def clip_of(seconds: float) -> "ClipSize":
    from utils.training.model_size import ClipSize

    return ClipSize._from_counts(round(seconds * 22050 / 1024), round(seconds * 17), round(seconds * 22050 / 256))


def sweep() -> None:
    many = (1, 2) if ARGS.toy else (8, 32)
    rows = [
        ("bf16", {}, many),
        ("bf16, checkpointing", {"enable_grad_checkpoint": True}, many),
        ("bf16, eager attention", {"enable_sdpa": False}, many[:1]),
        ("bf16, LoRA", {"enable_lora": True}, many),
        ("bf16, averaged weights", {"enable_ema": True}, many[:1]),
        ("fp32 with TF32", {"enable_mixed_precision": False}, many[:1]),
        ("fp32", {"enable_mixed_precision": False, "enable_tf32": False}, many[:1]),
        ("bf16, plain AdamW", {"enable_fused_optimizer": False}, many[:1]),
        ("bf16, state in RAM", {"offload_optimizer": True}, many[:1]),
        *([("bf16, compiled", {"use_compile": True}, many)] if CUDA else []),
        ("bf16, larger", {}, (3,) if ARGS.toy else (64,)),
    ]
    for name, settings, counts in rows:
        for count in counts:

            def row() -> None:
                with probed(count, **settings) as step:
                    found = step.run([batch_of(step, 2 if ARGS.toy else 8, count)], 3 if ARGS.toy else 9)
                report(
                    "training",
                    row=name,
                    clips=count,
                    ms=1e3 * found.seconds,
                    clips_a_second=count / found.seconds,
                    mib=found.peak / 2**20,
                    loss=found.numbers[-2],
                )

            attempt(f"training {name} {count}", row)


# --- memory ---


def memory() -> None:
    from utils.training import memory as plan
    from utils.training.model_size import ClipSize, ModelSize
    from utils.training.probe import probe
    from utils.xtts.device import choose_precision

    is_half = choose_precision(DEVICE, wanted=True).torch_dtype != torch.float32
    device = plan.Device("cuda" if CUDA else "cpu", 80 << 30, "", half=is_half)
    kinds = {"full": {}, "LoRA": {"enable_lora": True}, "checkpointing": {"enable_grad_checkpoint": True}}
    for layers, dim, heads in [(2, 64, 4), (6, 512, 8), (12, 768, 12), (30, 1024, 16)][: 1 if ARGS.toy else 4]:
        size = ModelSize(layers, dim, heads, text_rows=200 if ARGS.toy else 6681)
        for name, settings in kinds.items():

            def row() -> None:
                config = config_of(2 if ARGS.toy else 8, **settings)
                clip = clip_of(1) if ARGS.toy else ClipSize.from_config(config)
                with probe(config, size, DEVICE) as step:
                    measured = step.measure(clip, config.batch_size)
                    held = reserved()
                told = plan.estimate(config, device, size, clip)
                without = told.needed - told.parts["reserve"]
                report(
                    "memory",
                    size=f"{layers}x{dim}",
                    row=name,
                    told_mib=without / 2**20,
                    reserve_mib=told.parts["reserve"] / 2**20,
                    found_mib=measured.peak / 2**20,
                    held_mib=held,
                    ratio=measured.peak / without,
                    ms=1e3 * measured.seconds,
                )

            attempt(f"memory {layers}x{dim} {name}", row)


# --- recovery from a memory that is really full ---


def limit_memory(mib: float) -> None:
    """Let this process allocate so much of the GPU, 0 for all."""
    if CUDA:
        torch.cuda.empty_cache()
        total = torch.cuda.get_device_properties(0).total_memory / 2**20
        torch.cuda.set_per_process_memory_fraction(mib / total if mib else 1.0)
        torch.cuda.reset_peak_memory_stats()


def oom() -> None:
    count = 4 if ARGS.toy else 32

    def losses(limit: float) -> list[float]:
        found = []
        with probed(count, dropout=0) as step:
            batch = batch_of(step, 1 if ARGS.toy else 8, count)
            for number in range(3):
                if number == 1 and limit:
                    limit_memory(limit)
                result = step.step.run(update(batch))
                found += [result.loss, result.norm]
            report("splits", limit=limit, splits=step.step.micro.splits, mib=peak())
        return found

    whole, need = losses(0), peak()
    cut = losses(0.6 * need)
    limit_memory(0)
    worst = max(abs(a - b) / max(abs(b), 1e-6) for a, b in zip(cut, whole, strict=True))
    report("real out of memory", whole=whole, cut=cut, differs=worst)

    def state() -> None:
        """Room for the weights, but not for the state of the optimizer, which a run makes before its first update."""
        with probed(1, enable_grad_checkpoint=True) as step:
            weights = sum(weight.nbytes for weight in step.step.model.parameters()) / 2**20
        limit_memory(2.5 * weights)
        with probed(1, enable_grad_checkpoint=True) as step:
            report("room for 2.5 x the weights", loss=step.run([batch_of(step, 1, 1)]).numbers[0])

    attempt("room for 2.5 x the weights", state)


# --- a run, killed and resumed ---


def train_once(folder: str, name: str, kill_at: int) -> None:
    from tests.training.running import resume as go_on
    from tests.training.running import settings
    from utils import gpt_train
    from utils.studio.paths import Project
    from utils.studio.runs import create, list_runs
    from utils.training.step import TrainStep

    setattr(gpt_train, "certified", lambda config, *_: config)  # noqa: B010 - the certificate is a part of its own
    dataset, project = Path(folder) / "dataset", Path(folder) / name
    config = settings(
        project,
        dataset,
        max_steps=10,
        save_step=2,
        eval_step=5,
        dropout=0.1,
        enable_mixed_precision=True,
        batch_size=2,
        deterministic=bool(os.environ.get("DETERMINISTIC")),
    )
    runs = list_runs(Project(project), "train") if project.exists() else []
    run = runs[0] if runs else create("train", config, Project(project))
    original = TrainStep.run

    def dying(self: TrainStep, made: "Update") -> "StepResult":
        if made.number == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(self, made)

    setattr(TrainStep, "run", dying)  # noqa: B010
    go_on(run, config)


def resume() -> None:
    from safetensors.torch import load_file

    from tests.training.trainable import write_dataset

    folder = Path(tempfile.mkdtemp())
    write_dataset(folder / "dataset")

    def child(name: str, more: dict[str, str], kill_at: int = 999) -> int:
        words = f"-m tools.gpu.measure train_once --device {ARGS.device} {folder} {name} {kill_at}".split()
        environment = {**os.environ, **({} if CUDA else {"CUDA_VISIBLE_DEVICES": ""}), **more}
        done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=False)
        if done.returncode not in (0, -9):
            print(done.stdout[-1500:], done.stderr[-3000:], flush=True)
        return done.returncode

    def weights(name: str) -> dict[str, torch.Tensor]:
        (file,) = (folder / name).glob("runs/*/resume/weights.safetensors")
        return load_file(file)

    def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> tuple[bool, float]:
        worst = max(float((one[k].float() - other[k].float()).abs().max()) for k in one)
        return all(torch.equal(one[k], other[k]) for k in one), worst

    for mark in ("",) if ARGS.toy else ("", "-deterministic"):

        def row() -> None:
            more = {"DETERMINISTIC": "1"} if mark else {}
            codes = [
                child(f"{name}{mark}", more, kill_at) for name, kill_at in zip("abcc", (999, 999, 5, 999), strict=True)
            ]
            a, b, c = (weights(f"{name}{mark}") for name in "abc")
            report(f"resume{mark}", codes=codes, twice_the_same=same(a, b), killed_the_same=same(a, c))

        attempt(f"resume{mark}", row)


# --- speech ---


def speech() -> None:
    from utils.config import SpeechConfig
    from utils.speech.decoder import Decoder
    from utils.speech.types import Sentence
    from utils.training.model_size import random_gpt
    from utils.xtts.tokenizer import TokenizedText

    size, codes = sizes(), 24 if ARGS.toy else 96
    torch.manual_seed(0)
    with torch.device(DEVICE):
        gpt: Any = random_gpt(size).eval()
    with torch.no_grad():
        gpt.mel_head.bias[gpt.stop_audio_token] = -1e4
    voice = torch.randn(1, 32, size.dim) * 0.1
    text = TokenizedText("", "", "", "", (), tuple(range(5, 65)), ())

    def generate(decoder: "Decoder", count: int, seed: int = 0) -> tuple[float, float, list[list[int]]]:
        wait()
        began = time.perf_counter()
        with closing(decoder.request(voice, SpeechConfig(batch_size=count))) as request:
            made = [request.add(Sentence(text, seed=seed + n, max_codes=codes)) for n in range(count)]
            request.wait(lambda: bool(made[0].codes))
            first = time.perf_counter() - began
            request.wait(lambda: all(m.finished for m in made))
        wait()
        return first, time.perf_counter() - began, [m.codes for m in made]

    kinds: tuple[Any, ...] = ("fp32", "bf16", "fp16") if CUDA else ("fp32",)
    for kind in kinds:

        def row() -> None:
            decoder = Decoder(gpt, kind, str(DEVICE))
            for count in (1, 2) if ARGS.toy else (1, 8, 32):
                for graphs in (False, True) if CUDA else (False,):
                    decoder.uses_graphs = graphs
                    cold = generate(decoder, count)
                    first, whole, _ = min((generate(decoder, count) for _ in range(2)), key=lambda run: run[1])
                    report(
                        "decoding",
                        precision=kind,
                        graphs=graphs,
                        sentences=count,
                        ms_a_step=1e3 * (whole - first) / (codes - 1),
                        first_code_ms=1e3 * first,
                        cold_ms=1e3 * cold[1],
                        mib=peak(),
                        held_mib=reserved(),
                    )
            alone, before = generate(decoder, 1, 7)[2][0], reserved()
            with ThreadPoolExecutor(6) as pool:
                found = list(pool.map(lambda n: generate(decoder, 1 + n % 3, 7)[2][0], range(6)))
            same = sum(codes == alone for codes in found)
            report("six callers at once", precision=kind, same=same, of=6, grew_mib=reserved() - before)

        attempt(f"decoding {kind}", row)


if __name__ == "__main__":
    ARGS = PARSER.parse_intermixed_args()
    CUDA = ARGS.device == "cuda"
    DEVICE = torch.device(ARGS.device)
    globals()[ARGS.part](*[int(w) if w.lstrip("-").isdigit() else w for w in ARGS.rest])
