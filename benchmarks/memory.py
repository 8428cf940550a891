"""Compare the traced memory of an update with what a CPU really uses: `python benchmarks/memory.py`.

Each size runs in a process of its own, which first makes the same update once, so that what the libraries allocate for
themselves is not counted; `memory-plan` adds it as a reserve. The measured value is the peak that the kernel counts,
less what the process had before the model was built. Blocks are returned to the system at once
(MALLOC_MMAP_THRESHOLD_), as an allocator without gaps would do.
"""

import argparse
import gc
import itertools
import multiprocessing
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

SIZES = {"2x64": (2, 64, 4, 32), "6x512": (6, 512, 8, 4), "12x768": (12, 768, 12, 4)}  # layers, width, heads, clips
SETTINGS: dict[str, dict[str, object]] = {
    "full": {},
    "lora": {"enable_lora": True},
    "checkpointing": {"enable_grad_checkpoint": True},
}
RETURN_BLOCKS = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}
MIB = 2**20


def compare(names: tuple[str, str]) -> str:
    """Measure a size with settings in this process; return a row of the table."""
    import psutil
    import torch

    from utils.config import TrainConfig
    from utils.training.memory_trace import trace_update
    from utils.training.model_size import ClipSize, ModelSize
    from utils.training.probe import probe

    size_name, settings_name = names
    layers, width, heads, clips = SIZES[size_name]
    plain = {"enable_mixed_precision": False, "batch_size": clips, "grad_acumm": 1}
    config = TrainConfig.parse({**plain, **SETTINGS[settings_name]})
    size, clip = ModelSize(layers=layers, dim=width, heads=heads), ClipSize.from_config(config)
    traced = sum(trace_update(config, size, clip, on_gpu=False, half=False).values())

    def measure() -> int:
        with probe(config, size, torch.device("cpu")) as probed:
            return probed.measure(clip, clips).peak

    measure()
    gc.collect()
    before = psutil.Process().memory_info().rss
    measured = measure() - before
    return f"| {size_name} | {settings_name} | {traced / MIB:,.0f} | {measured / MIB:,.0f} | {traced / measured:.2f} |"


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    os.environ.update(RETURN_BLOCKS)
    print("| layers x width | settings | traced, MiB | measured, MiB | traced / measured |\n|---|---|---|---|---|")
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for row in pool.imap(compare, itertools.product(SIZES, SETTINGS)):
            print(row, flush=True)


if __name__ == "__main__":
    main()
