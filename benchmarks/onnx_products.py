"""Compare the matrix products of one audio code in torch and ONNX Runtime: `python benchmarks/onnx_products.py`.

A step of the GPT of the published size has 120 products, four in each of 30 layers. Each kind of product runs in a
process of its own, since the waiting threads of the two libraries slow each other down, and the processes take turns.
The error is that against fp32. A row should not depend on the other rows of its batch; how much it does is shown too.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Self

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.record import save_table, table
from utils.speech.layers import Linear, Precision, linear
from utils.speech.precision import multiplies_bf16

TITLE = "The matrix products of one audio code in torch and ONNX Runtime"
BLOCK, LEVEL = 128, 4  # weights with one scale; accuracy level 4 computes in int8
FLOAT, OPERATIONS = 1, "com.microsoft"  # ONNX's number of fp32; the set of ONNX Runtime's own operations
TYPES = {"float32": FLOAT, "uint8": 2, "int8": 3}
COMPARED = 64  # rows
PAUSE = 0.3  # seconds for the threads of the last process to fall asleep


class Shape(NamedTuple):
    """A product of a layer."""

    inputs: int
    outputs: int
    gelu: bool = False
    after_gelu: bool = False


class Product(NamedTuple):
    """A product with its weights."""

    shape: Shape
    weight: Tensor
    bias: Tensor


Make = Callable[[Product], Linear]
Constants = Sequence[tuple[str, npt.NDArray[Any]] | None]  # inputs of an operation after the rows; None is left out


def shapes(dim: int) -> list[Shape]:
    """Return the products of a layer: to queries, keys and values, out of the attention, and both of the MLP."""
    wide = 4 * dim
    return [Shape(dim, 3 * dim), Shape(dim, dim), Shape(dim, wide, gelu=True), Shape(wide, dim, after_gelu=True)]


def torch_product(precision: Precision) -> Make:
    """Return what makes a product as our decoder computes it."""

    def make(product: Product) -> Linear:
        shape = product.shape
        return linear(product.weight, product.bias, precision, gelu=shape.gelu, after_gelu=shape.after_gelu)

    return make


class OnnxProduct:
    """A product by one operation of ONNX Runtime, with GPT-2's activation by torch."""

    def __init__(self, shape: Shape, operation: str, constants: Constants, **numbers: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.use_per_session_threads = False
        options.log_severity_level = 4
        model = one_operation(shape, operation, constants, numbers)
        self.session: Any = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.gelu = shape.gelu

    def __call__(self, rows: Tensor) -> Tensor:
        product = torch.from_numpy(self.session.run(None, {"rows": rows.numpy()})[0])
        return functional.gelu(product, approximate="tanh") if self.gelu else product


def dynamic_int8(product: Product) -> OnnxProduct:
    """Return DynamicQuantizeMatMul: int8 with a scale per output, and one for all rows of a batch."""
    scales = product.weight.abs().amax(1) / 127
    weight = (product.weight / scales[:, None]).round().to(torch.int8).T.contiguous()
    zero = np.zeros((), np.int8)
    constants = ("weight", weight.numpy()), ("scales", scales.numpy()), ("zero", zero), ("bias", product.bias.numpy())
    return OnnxProduct(product.shape, "DynamicQuantizeMatMul", constants)


def blockwise(bits: int) -> Callable[[Product], OnnxProduct]:
    """Return what makes MatMulNBits: blocks of weights with a scale each, and a scale per row and block."""

    def make(product: Product) -> OnnxProduct:
        shape, half = product.shape, 1 << (bits - 1)
        blocks = product.weight.numpy().reshape(shape.outputs, -1, BLOCK)
        extremes = np.take_along_axis(blocks, np.abs(blocks).argmax(-1)[..., None], -1)
        scales = extremes / -half
        weight = np.clip(np.round(blocks / scales) + half, 0, 2 * half - 1).astype(np.uint8)
        if bits == 4:
            weight = (weight[..., 0::2] + 16 * weight[..., 1::2]).astype(np.uint8)
        constants = ("weight", weight), ("scales", scales.ravel()), None, None, ("bias", product.bias.numpy())
        return OnnxProduct(
            shape, "MatMulNBits", constants,
            K=shape.inputs, N=shape.outputs, bits=bits, block_size=BLOCK, accuracy_level=LEVEL,
        )  # fmt: skip

    return make


KINDS: dict[str, Make] = {
    "torch fp32": torch_product("fp32"),
    "torch int8": torch_product("int8"),
    "torch bf16": torch_product("bf16"),
    "DynamicQuantizeMatMul, int8": dynamic_int8,
    "MatMulNBits, 8 bits": blockwise(8),
    "MatMulNBits, 4 bits": blockwise(4),
}


# --- a model of one operation in ONNX's format, which is protobuf's ---


def one_operation(shape: Shape, operation: str, constants: Constants, numbers: dict[str, int]) -> bytes:
    """Write a model: rows go into one operation with constant tensors, their product comes out."""
    names = ["rows", *(each[0] if each else "" for each in constants)]
    attributes = [data(5, data(1, name) + integer(3, value) + integer(20, 2)) for name, value in numbers.items()]
    node = b"".join([*(data(1, name) for name in names), data(2, "product"), data(4, operation), *attributes])
    tensors = b"".join(data(5, tensor(*each)) for each in constants if each)
    ends = data(11, value_of("rows", shape.inputs)) + data(12, value_of("product", shape.outputs))
    graph = data(1, node + data(7, OPERATIONS)) + data(2, "graph") + tensors + ends
    sets = data(8, data(1, "") + integer(2, 17)) + data(8, data(1, OPERATIONS) + integer(2, 1))
    return integer(1, 8) + data(7, graph) + sets


def tensor(name: str, value: npt.NDArray[Any]) -> bytes:
    """Write a constant tensor."""
    sizes = b"".join(integer(1, size) for size in value.shape)
    return sizes + integer(2, TYPES[value.dtype.name]) + data(8, name) + data(9, np.ascontiguousarray(value).tobytes())


def value_of(name: str, columns: int) -> bytes:
    """Write what goes in or out: any number of rows in fp32."""
    sizes = data(1, data(2, "count")) + data(1, integer(1, columns))
    return data(1, name) + data(2, data(1, integer(1, FLOAT) + data(2, sizes)))


def integer(field: int, value: int) -> bytes:
    """Write a field with a number."""
    return varint(field << 3) + varint(value)


def data(field: int, value: bytes | str) -> bytes:
    """Write a field with bytes, a text or a message."""
    raw = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def varint(value: int) -> bytes:
    """Write a number of seven bits a byte."""
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])


# --- measuring ---


class Kind:
    """A process that computes products of one kind."""

    def __init__(self, name: str, arguments: argparse.Namespace) -> None:
        context = multiprocessing.get_context("spawn")
        self.name, (self.pipe, theirs) = name, context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, name, arguments))
        self.process.start()
        theirs.close()
        self.error, self.dependence = self.pipe.recv()
        self.best = dict.fromkeys(arguments.rows, float("inf"))  # seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pipe.close()
        self.process.join()

    def round(self) -> None:
        """Compute with each number of rows, and keep what was fastest."""
        time.sleep(PAUSE)
        for rows in self.best:
            self.pipe.send(rows)
            self.best[rows] = min(self.best[rows], self.pipe.recv())


def _serve(pipe: Connection, name: str, arguments: argparse.Namespace) -> None:
    torch.set_num_threads(arguments.threads)
    if not name.startswith("torch"):
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # it would report to Microsoft
        import onnxruntime

        onnxruntime.set_default_logger_severity(4)
        onnxruntime.set_global_thread_pool_sizes(arguments.threads, 1)
    torch.manual_seed(0)
    layer = [
        Product(shape, torch.randn(shape.outputs, shape.inputs) / shape.inputs**0.5, torch.randn(shape.outputs))
        for shape in shapes(arguments.dim)
    ]
    given = [torch.randn(COMPARED, shape.inputs) for shape in shapes(arguments.dim)]
    given[-1] = functional.gelu(given[-1], approximate="tanh")
    with torch.inference_mode():
        stack = [[KINDS[name](product) for product in layer] for _ in range(arguments.layers)]
        pipe.send(_accuracy(stack[0], layer, given))
        while True:
            try:
                rows = pipe.recv()
            except EOFError:
                return
            pipe.send(min(_seconds(stack, [each[:rows] for each in given]) for _ in range(arguments.repeats)))


def _accuracy(made: list[Linear], layer: list[Product], given: list[Tensor]) -> tuple[float, float]:
    """Return the largest error against fp32, and the largest difference of a row alone and in a batch."""
    errors, differences = [], []
    for compute, product, rows in zip(made, layer, given, strict=True):
        exact = functional.linear(rows, product.weight, product.bias)
        exact = functional.gelu(exact, approximate="tanh") if product.shape.gelu else exact
        found = compute(rows)
        errors.append(float((found - exact).norm() / exact.norm()))
        differences.append(float((compute(rows[:1]) - found[:1]).norm() / found[:1].norm()))
    return max(errors), max(differences)


def _seconds(stack: list[list[Linear]], given: list[Tensor]) -> float:
    began = time.perf_counter()
    for layer in stack:
        for product, rows in zip(layer, given, strict=True):
            product(rows)
    return time.perf_counter() - began


def main() -> None:
    """Measure the kinds in turn and show the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=30, help="of the GPT (30)")
    parser.add_argument("--dim", type=int, default=1024, help="width of the GPT, a multiple of 128 (1024)")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 2, 4, 8], help="sentences together (1 2 4 8)")
    parser.add_argument("--threads", type=int, default=2, help="threads (2)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each kind in turn; the best counts (5)")
    parser.add_argument("--repeats", type=int, default=5, help="steps in a round; the best counts (5)")
    parser.add_argument("--results", type=Path, help="folder for the findings (none)")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        names = [name for name in KINDS if name != "torch bf16" or multiplies_bf16()]
        kinds = [stack.enter_context(Kind(name, arguments)) for name in names]
        for _ in range(arguments.rounds):
            for kind in kinds:
                kind.round()
    head = [
        "",
        *(f"{rows} row{'s' * (rows > 1)}, ms" for rows in arguments.rows),
        "error against fp32",
        "row alone against in a batch",
    ]
    rows = [
        [
            kind.name,
            *(f"{1e3 * best:.1f}" for best in kind.best.values()),
            f"{kind.error:.2%}",
            f"{kind.dependence:.2%}",
        ]
        for kind in kinds
    ]
    print(table(head, rows))
    if arguments.results:
        save_table("onnx_products", TITLE, head, rows, arguments.results)


if __name__ == "__main__":
    main()
