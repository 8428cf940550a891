"""Tensors on disk: safetensors files written one tensor at a time, and nested states split into JSON and tensors.

``safetensors`` reads the files. Its ``save_file`` is not used because it copies all tensors of a GPU to RAM before it
writes the first byte: for an optimizer, that is 3.5 GB of RAM instead of one tensor.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from utils.core.storage import storage_errors
from utils.xtts.facts import TensorFileError

ALIASES = "aliases"  # names of tensors that share memory, so that they share it again
ORDERS = "orders"  # order of the dimensions in memory if not contiguous; fused optimizers depend on it
ALIGNMENT = 8
MAX_HEADER = 8 << 20  # bytes; a thousand tensors take 150,000
LARGEST_HALF = torch.finfo(torch.float16).max
CODES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.bool: "BOOL",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8",
}  # fmt: skip

Tensors = Mapping[str, Tensor]


def write_tensors(path: Path, tensors: Tensors, kind: Callable[[Tensor], torch.dtype] | None = None) -> str:
    """Write tensors of any device, stride and sharing one after another, and return the SHA-256 of the file.

    ``kind`` chooses the dtype of each; by default its own.
    """
    aliases = _aliases(tensors)
    kinds = {name: kind(tensor) if kind else tensor.dtype for name, tensor in tensors.items() if name not in aliases}
    names = sorted(kinds, key=lambda name: -kinds[name].itemsize)  # wide types first, so that all are aligned
    header = _header(tensors, {name: kinds[name] for name in names}, aliases)
    digest = hashlib.sha256()
    with storage_errors(path), path.open("wb", buffering=0) as file:
        for content in chain([memoryview(header)], (_content(tensors[name], kinds[name]) for name in names)):
            digest.update(content)
            left = content
            while left:  # a call writes at most 2 GiB
                left = left[file.write(left) :]
    return digest.hexdigest()


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a file into memory, so that it can be replaced while the tensors are in use."""
    from safetensors import SafetensorError, safe_open

    try:
        _check_header(path)
        with safe_open(path, framework="pt", backend="pread") as file:
            tensors: dict[str, Tensor] = file.get_tensors()
            notes = file.metadata() or {}
        for name, order in json.loads(notes.get(ORDERS, "{}")).items():
            back = sorted(range(len(order)), key=order.__getitem__)
            tensors[name] = tensors[name].permute(order).contiguous().permute(back)
        return tensors | {name: tensors[first] for name, first in json.loads(notes.get(ALIASES, "{}")).items()}
    except (OSError, SafetensorError, ValueError, TypeError, LookupError, AttributeError, RuntimeError) as error:
        raise TensorFileError(path, str(error)) from error


def _check_header(path: Path) -> None:
    with path.open("rb") as file:
        if int.from_bytes(file.read(8), "little") > MAX_HEADER:
            raise ValueError("its header is too large")


def half_dtype(tensor: Tensor) -> torch.dtype:
    """Return float16, or the tensor's own dtype if float16 cannot hold its values."""
    if tensor.dtype not in {torch.float32, torch.float64, torch.bfloat16}:
        return tensor.dtype
    if tensor.numel() and float(tensor.detach().abs().amax()) > LARGEST_HALF:
        return torch.float32
    return torch.float16


def flatten_tree(tree: object) -> tuple[object, dict[str, Tensor]]:
    """Split nested dicts, lists and tuples into JSON with tensor names, and the tensors."""
    tensors: dict[str, Tensor] = {}
    return _node(tree, (), tensors), tensors


def unflatten_tree(node: object, tensors: Tensors) -> Any:  # noqa: ANN401 - any tree
    if not isinstance(node, dict):
        return node
    ((kind, value),) = node.items()
    if kind == "tensor":
        return tensors[value]
    if kind == "dict":
        return {key: unflatten_tree(inner, tensors) for key, inner in value}
    items = [unflatten_tree(inner, tensors) for inner in value]
    return tuple(items) if kind == "tuple" else items


def _node(tree: object, path: tuple[str, ...], tensors: dict[str, Tensor]) -> object:
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    name = "/".join(path)
    if isinstance(tree, Tensor):
        tensors[name] = tree
        return {"tensor": name}
    if isinstance(tree, dict):
        return {"dict": [[key, _node(value, (*path, _part(key, name)), tensors)] for key, value in tree.items()]}
    if isinstance(tree, list | tuple):
        items = [_node(value, (*path, str(number)), tensors) for number, value in enumerate(tree)]
        return {"tuple" if isinstance(tree, tuple) else "list": items}
    raise TypeError(f"{name}: a {type(tree).__name__} cannot be saved.")


def _part(key: object, name: str) -> str:
    """Encode a key so that all keys of a dict and all paths of a tree are distinct."""
    if isinstance(key, int):
        return str(key)
    if not isinstance(key, str):
        raise TypeError(f"{name}: a key of type {type(key).__name__} cannot be saved.")
    return json.dumps(key) if key.lstrip("-").isdigit() or set(key) & set('/"') else key


def _aliases(tensors: Tensors) -> dict[str, str]:
    """Map tensors that share memory to the first of them; tensors that only overlap are written twice."""
    first: dict[object, str] = {}
    aliases = {}
    for name, tensor in tensors.items():
        if type(tensor) not in {Tensor, nn.Parameter, nn.Buffer}:
            raise TypeError(f"{name}: a {type(tensor).__name__} cannot be saved; gather or unwrap it first.")
        if not tensor.numel():
            continue
        key = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        if first.setdefault(key, name) != name:
            aliases[name] = first[key]
    return aliases


def _header(tensors: Tensors, kinds: Mapping[str, torch.dtype], aliases: Mapping[str, str]) -> bytes:
    orders = {name: order for name in kinds if (order := _memory_order(tensors[name]))}
    notes = {"format": "pt", ALIASES: json.dumps(aliases), ORDERS: json.dumps(orders)}
    entries: dict[str, object] = {"__metadata__": notes}
    start = 0
    for name, kind in kinds.items():
        end = start + tensors[name].numel() * kind.itemsize
        entries[name] = {"dtype": CODES[kind], "shape": [*tensors[name].shape], "data_offsets": [start, end]}
        start = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def _memory_order(tensor: Tensor) -> list[int]:
    """Return the order of the dimensions in memory, slowest first; empty if contiguous."""
    if tensor.is_contiguous():
        return []
    order = sorted(range(tensor.dim()), key=tensor.stride().__getitem__, reverse=True)
    return order if tensor.permute(order).is_contiguous() else []


def _content(tensor: Tensor, kind: torch.dtype) -> memoryview:
    """Return the bytes of a tensor, copied only if device, dtype or order require it."""
    plain = tensor.detach().to("cpu", kind).contiguous().reshape(-1).view(torch.uint8)
    return plain.numpy().data
