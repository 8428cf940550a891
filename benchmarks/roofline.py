"""Calculate how long an update takes at least on GPUs that are not here: `python benchmarks/roofline.py`.

One update of each side is traced on tensors without data: the products it computes and the bytes it moves. An operation
takes at least as long as its products at the peak rate of the GPU, and as its bytes at the bandwidth of its memory.
The sum over all operations is a bound that no run reaches. **Calculated, not measured.**

coqui trains as in its recipe, in fp32, with texts and codes padded apart; ours with its default settings. Both get the
same eight clips of 2 to 11 seconds with references of six seconds; the shorter ones of our real batches do not count.

The second table is about one more audio code in the middle of a sentence of six seconds: a step of coqui's `generate`,
traced on a CPU, and ours, traced on tensors of a GPU that is not there. It also counts what the host has to start.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.optim import AdamW, Optimizer
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

from benchmarks.decoding import TOKENS, Coqui, built
from tests.rehearsal import fake_cuda
from utils.config import SpeechConfig, TrainConfig
from utils.media.rates import CODE_SAMPLES, RATE
from utils.speech.decoder import Decoder
from utils.speech.layers import Precision
from utils.speech.types import Sentence
from utils.training.model_size import MAX_REFERENCE_FRAMES, ModelSize, random_gpt
from utils.training.optimizers import make_optimizer
from utils.training.packing import MEL_BANDS, Example, PackedGpt, SpecialTokens, pack
from utils.training_optimizations import TrainingOptimizer
from utils.xtts.tokenizer import TokenizedText

SECONDS = (2.0, 3.0, 4.0, 5.0, 6.0, 7.5, 9.0, 11.0)  # the clips of the batch
TOKENS_PER_SECOND = 14
CODES = 70  # of a sentence so far, when one more is traced
ATEN = torch.ops.aten
COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd  # noqa: SLF001
LOOKUPS = ("aten::embedding", "aten::index_select", "aten::gather", "aten::index.")  # read only what they return
FREE = ("aten::_local_scalar_dense", "aten::empty.memory_format", "aten::empty_like", "aten::_unsafe_view")
FUSED_ADAMW = 7  # tensors that one weight reads and writes: itself and two moments both ways, and its gradient


class Gpu(NamedTuple):
    """Peak rates from the data sheets, dense, in TFLOP/s, and GB/s."""

    name: str
    half: float
    single: float
    bandwidth: float


GPUS = (
    Gpu("T4", 65, 8.1, 320),
    Gpu("RTX 3090", 71, 35.6, 936),
    Gpu("RTX 4090", 165, 82.6, 1008),
    Gpu("A100 40 GB", 312, 19.5, 1555),
    Gpu("H100 SXM", 989, 67, 3350),
)


class Operation(NamedTuple):
    """What one operation does."""

    flops: float
    size: int  # bytes read and written
    half: bool


@dataclass
class Work:
    """What an update does."""

    operations: list[Operation] = field(default_factory=list)

    @property
    def flops(self) -> float:
        return sum(one.flops for one in self.operations)

    @property
    def size(self) -> int:
        return sum(one.size for one in self.operations)

    def seconds(self, gpu: Gpu) -> float:
        """Return the bound for a GPU."""
        rates = {True: gpu.half * 1e12, False: gpu.single * 1e12}
        return sum(max(one.flops / rates[one.half], one.size / (gpu.bandwidth * 1e9)) for one in self.operations)


class Trace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the operations of a computation while it is wanted."""

    def __init__(self, is_wanted: Callable[[], bool] = lambda: True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.work, self.is_wanted = Work(), is_wanted

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        if (
            torch.is_inference_mode_enabled()
            and func.namespace == "aten"
            and func.has_kernel_for_dispatch_key(COMPOSITE)
        ):
            with self:
                return func.decompose(*args, **(kwargs or {}))  # elsewhere it has been already
        result = func(*args, **(kwargs or {}))
        if self.is_wanted() and not func.is_view and func.name().startswith("aten::") and func.name() not in FREE:
            self._note(func, args, kwargs or {}, result)
        return result

    def _note(self, func: Any, args: Any, kwargs: Any, result: object) -> None:  # noqa: ANN401
        read = {id(leaf): leaf.nbytes for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        written = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        size = sum(leaf.nbytes for leaf in written)
        size += size if func.name().startswith(LOOKUPS) else sum(read.values())
        if func.name().startswith("aten::index_put"):
            size = 2 * args[2].nbytes  # of what it stores, not of where
        if func is ATEN._fused_adamw_.default:
            size = FUSED_ADAMW * sum(weight.nbytes for weight in args[0])
        count = flop_registry.get(func.overloadpacket)
        flops = float(count(*args, **kwargs, out_val=result)) if count else 0.0
        half = bool(written) and written[0].dtype in {torch.bfloat16, torch.float16}
        self.work.operations.append(Operation(flops, size, half))


def attention_flops(query: Tensor, key: Tensor, value: Tensor, *_: object, **__: object) -> int:
    """Count the products of attention."""
    return int(sdpa_flop_count(query.shape, key.shape, value.shape))  # type: ignore[no-untyped-call]


def backward_flops(gradient: Tensor, query: Tensor, key: Tensor, value: Tensor, *_: object, **__: object) -> int:
    """Count the products of its backward pass."""
    shapes = gradient.shape, query.shape, key.shape, value.shape
    return int(sdpa_backward_flop_count(*shapes))  # type: ignore[no-untyped-call]


KERNELS = {  # torch counts those of GPUs only; a fake tensor of a GPU has no backward pass
    ATEN._scaled_dot_product_flash_attention_for_cpu: attention_flops,  # noqa: SLF001
    ATEN._scaled_dot_product_flash_attention_for_cpu_backward: backward_flops,  # noqa: SLF001
}


def fused_attention(query: Tensor, key: Tensor, value: Tensor, *_: object, **settings: Any) -> Tensor:  # noqa: ANN401
    """Attend without dropout, which the fused kernel of a CPU does not have."""
    causal = bool(settings.get("is_causal"))
    return _attention(query, key, value, attn_mask=settings.get("attn_mask"), is_causal=causal)


def gpu_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, **_: object) -> Tensor:
    """Attend with the kernel that a GPU takes for a mask; tensors without data get one that copies all keys."""
    bias = None if attn_mask is None else attn_mask.expand(*query.shape[:3], key.shape[2])
    attended: Tensor = ATEN._scaled_dot_product_efficient_attention(query, key, value, bias, False)[0]  # noqa: FBT003, SLF001
    return attended


_attention = F.scaled_dot_product_attention


def without_data(model: nn.Module) -> nn.Module:
    """Give a model of the meta device weights without data."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        return model.to_empty(device="cpu").train()


def traced(compute: Callable[[], Tensor], optimizer: Optimizer) -> Work:
    """Trace a forward and a backward pass and the step of the optimizer, whose state exists already."""
    for weight in (weight for group in optimizer.param_groups for weight in group["params"]):
        weight.grad = torch.empty_like(weight)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    trace = Trace()
    with trace, mock.patch.object(F, "scaled_dot_product_attention", fused_attention):
        compute().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return trace.work


def counts(seconds: float) -> tuple[int, int]:
    """Return the tokens of the text and the codes of a clip."""
    return int(seconds * TOKENS_PER_SECOND), int(seconds * RATE / CODE_SAMPLES)


def our_work(size: ModelSize, settings: dict[str, object]) -> Work:
    """Trace our update."""
    config = TrainConfig.parse({"enable_byte_dropout": False, **settings})
    with torch.device("meta"):
        gpt = random_gpt(size)
        TrainingOptimizer(config, "cpu").apply(gpt)
    tokens = SpecialTokens.from_model(gpt)
    model = PackedGpt(without_data(gpt), config.label_smoothing)
    mel = np.zeros((MAX_REFERENCE_FRAMES, MEL_BANDS), np.float16)
    clips = map(counts, SECONDS)
    examples = [Example(np.ones(text, np.int32), np.ones(codes, np.int16), mel) for text, codes in clips]
    batch = pack(examples, tokens)
    optimizer, _ = make_optimizer(model, config, torch.device("cpu"))

    def compute() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=config.enable_mixed_precision):
            sums = model(batch)
        loss: Tensor = sums.text + sums.audio
        return loss

    return traced(compute, optimizer)


def coqui_work(size: ModelSize) -> Work:
    """Trace an update of coqui's GPT."""
    with torch.device("meta"):
        gpt: Any = random_gpt(size)
    gpt = without_data(gpt)
    texts, codes = zip(*map(counts, SECONDS), strict=True)
    lengths = torch.tensor([int(seconds * RATE) for seconds in SECONDS])
    with FakeTensorMode(allow_non_fake_inputs=True):
        mel = torch.empty(len(SECONDS), 1, MEL_BANDS, MAX_REFERENCE_FRAMES)
    optimizer = AdamW(gpt.parameters(), foreach=True)

    def compute() -> Tensor:
        text, audio, _ = gpt(
            torch.ones(len(SECONDS), max(texts), dtype=torch.long),
            torch.tensor(texts),
            torch.ones(len(SECONDS), max(codes), dtype=torch.long),
            lengths,
            cond_mels=mel,
            cond_lens=torch.full((len(SECONDS),), MAX_REFERENCE_FRAMES),
        )
        loss: Tensor = 0.01 * text + audio
        return loss

    return traced(compute, optimizer)


class Step(NamedTuple):
    """One more code of each sentence."""

    work: Work
    starts: int  # kernels, copies and graphs that the host starts
    sentences: int = 1


def our_step(size: ModelSize, precision: Precision, sentences: int) -> Step:
    """Trace the step that our CUDA graph holds, and count what is started beside it."""
    text, config = TokenizedText("", "", "", "", (), tuple(range(1, TOKENS + 1)), ()), SpeechConfig(batch_size=64)
    fused = mock.patch.object(F, "scaled_dot_product_attention", gpu_attention)
    with fake_cuda() as recorder, Trace(lambda: recorder.is_capturing) as trace, fused:
        decoder = Decoder(random_gpt(size), precision, "cuda:0")
        prompt = torch.empty(1, 32, size.dim)

        def counted(codes: int) -> int:
            recorder.clear()
            given = [Sentence(text, seed=number, max_codes=codes) for number in range(sentences)]
            decoder.generate(given, prompt, config)
            return recorder.kernels.total()

        counted(1)  # records the graph that the others use
        starts = counted(CODES + 1) - counted(CODES)
    return Step(trace.work, starts, sentences)


def coqui_step(size: ModelSize) -> Step:
    """Trace a step of coqui's generate: a sentence less one that is a code shorter."""
    arguments = argparse.Namespace(layers=size.layers, dim=size.dim, heads=size.heads, device="cpu", codes=CODES)
    coqui, counts = Coqui(built(arguments), arguments), []
    for codes in (CODES, CODES + 1):
        with Trace() as trace, torch.no_grad():
            coqui.speak(codes)
        counts.append(Counter(trace.work.operations))
    work = Work(list((counts[1] - counts[0]).elements()))
    return Step(work, len(work.operations))


def table(sides: dict[str, Work]) -> str:
    """Return the page: one row for each side."""
    first = next(iter(sides.values()))
    lines = [
        "| | TFLOP | GB moved | kernels | " + " | ".join(gpu.name for gpu in GPUS) + " |",
        "|---" * (4 + len(GPUS)) + "|",
    ]
    for name, work in sides.items():
        bounds = [f"{work.seconds(gpu):.2f} s ({first.seconds(gpu) / work.seconds(gpu):.1f}x)" for gpu in GPUS]
        cells = [name, f"{work.flops / 1e12:.1f}", f"{work.size / 1e9:.0f}", f"{len(work.operations)}", *bounds]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def step_table(steps: dict[str, Step]) -> str:
    """Return the table of decoding: one row for each side, and the bounds for one code of one sentence."""
    first = next(iter(steps.values()))
    lines = [
        "| | GFLOP a step | GB moved | kernels | started by the host | " + " | ".join(gpu.name for gpu in GPUS) + " |",
        "|---" * (5 + len(GPUS)) + "|",
    ]
    for name, (work, starts, sentences) in steps.items():
        seconds = [work.seconds(gpu) / sentences for gpu in GPUS]
        ratios = [first.work.seconds(gpu) / each for gpu, each in zip(GPUS, seconds, strict=True)]
        bounds = [f"{1e3 * each:.2f} ms ({ratio:.1f}x)" for each, ratio in zip(seconds, ratios, strict=True)]
        cells = [name, f"{work.flops / 1e9:.1f}", f"{work.size / 1e9:.2f}", f"{len(work.operations)}", f"{starts}"]
        lines.append("| " + " | ".join([*cells, *bounds]) + " |")
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--layers", type=int, default=30)
    found.add_argument("--dim", type=int, default=1024)
    arguments = found.parse_args()
    size = ModelSize(layers=arguments.layers, dim=arguments.dim, heads=max(1, arguments.dim // 64))
    with mock.patch.dict(flop_registry, KERNELS):
        sides = {
            "plain coqui-tts, fp32": coqui_work(size),
            "ours, fp32": our_work(size, {"enable_mixed_precision": False}),
            "ours, half precision": our_work(size, {}),
            "with gradient checkpointing": our_work(size, {"enable_grad_checkpoint": True}),
            "with LoRA": our_work(size, {"enable_lora": True}),
        }
        steps = {
            "plain coqui-tts, fp32": coqui_step(size),
            "ours, fp32": our_step(size, "fp32", 1),
            "ours, fp16": our_step(size, "fp16", 1),
            "ours, fp16, eight sentences": our_step(size, "fp16", 8),
        }
    print(table(sides), step_table(steps), sep="\n\n")


if __name__ == "__main__":
    main()
