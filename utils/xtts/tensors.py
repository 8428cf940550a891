"""Tensors on disk: safetensors files written piece by piece, and nested states taken apart into JSON and tensors.

The files are what ``safetensors`` itself reads. They are written here because its ``save_file`` brings everything to
the CPU before it writes the first byte: of an optimiser on a GPU that is 3.5 GB of RAM, here it is one tensor.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from utils.core.folders import DamagedError
from utils.core.storage import storage_error

ALIASES = "aliases"  # names of tensors that are one in memory, so that they are one again
ORDERS = "orders"  # dimensions from slow to fast where they are turned: fused optimisers go by the order in memory
ALIGNMENT = 8
LARGEST_HALF = torch.finfo(torch.float16).max
CODES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}

Tensors = Mapping[str, Tensor]


def write_tensors(path: Path, tensors: Tensors, kind: Callable[[Tensor], torch.dtype] | None = None) -> str:
    """Write tensors one after another and return the SHA-256 of the file.

    Args:
        path: The file.
        tensors: By name; whatever their device, stride and sharing.
        kind: Chooses the number format of each; as they are by default.
    """
    aliases = _aliases(tensors)
    kinds = {name: kind(tensor) if kind else tensor.dtype for name, tensor in tensors.items() if name not in aliases}
    names = sorted(kinds, key=lambda name: -kinds[name].itemsize)  # wide numbers first, so that all lie aligned
    header = _header(tensors, {name: kinds[name] for name in names}, aliases)
    digest = hashlib.sha256()
    try:
        with path.open("wb", buffering=0) as file:
            for content in chain([memoryview(header)], (_content(tensors[name], kinds[name]) for name in names)):
                digest.update(content)
                left = content
                while left:  # a call may write less than it was given: 2 GiB at most
                    left = left[file.write(left) :]
    except OSError as error:
        raise storage_error(path, error) from error
    return digest.hexdigest()


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a file into memory of its own, so that it can be replaced while the tensors live."""
    from safetensors import SafetensorError

    try:
        return _read(path)
    except (OSError, SafetensorError, ValueError, TypeError, LookupError, AttributeError, RuntimeError) as error:
        raise DamagedError(f"{path} cannot be read: {error}.", hint="Choose another one, or copy it again.") from error


def _read(path: Path) -> dict[str, Tensor]:
    from safetensors import safe_open

    with safe_open(path, framework="pt", backend="pread") as file:
        tensors: dict[str, Tensor] = file.get_tensors()
        notes = file.metadata() or {}
    for name, order in json.loads(notes.get(ORDERS, "{}")).items():
        back = sorted(range(len(order)), key=order.__getitem__)
        tensors[name] = tensors[name].permute(order).contiguous().permute(back)
    return tensors | {name: tensors[first] for name, first in json.loads(notes.get(ALIASES, "{}")).items()}


def half_dtype(tensor: Tensor) -> torch.dtype:
    """Choose half precision for what it can hold."""
    if tensor.dtype not in {torch.float32, torch.float64, torch.bfloat16}:
        return tensor.dtype
    if tensor.numel() and float(tensor.detach().abs().amax()) > LARGEST_HALF:
        return torch.float32
    return torch.float16


def total_bytes(tensors: Iterable[Tensor]) -> int:
    """Return how much room tensors take as they are."""
    return sum(tensor.nbytes for tensor in tensors)


def flatten_tree(tree: object) -> tuple[object, dict[str, Tensor]]:
    """Turn nested dicts, lists and tuples into JSON that names the tensors in them, and those tensors."""
    tensors: dict[str, Tensor] = {}
    return _node(tree, (), tensors), tensors


def unflatten_tree(node: object, tensors: Tensors) -> Any:  # noqa: ANN401 - any tree
    """Turn what ``take_apart`` made back into what it was."""
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
    if isinstance(tree, Tensor):
        name = "/".join(path)
        tensors[name] = tree
        return {"tensor": name}
    if isinstance(tree, dict):
        if fault := next((key for key in tree if not isinstance(key, int | str)), None):
            raise TypeError(f"{'/'.join(path)}: a key of type {type(fault).__name__} cannot be saved.")
        return {"dict": [[key, _node(value, (*path, _part(key)), tensors)] for key, value in tree.items()]}
    if isinstance(tree, list | tuple):
        items = [_node(value, (*path, str(number)), tensors) for number, value in enumerate(tree)]
        return {"tuple" if isinstance(tree, tuple) else "list": items}
    raise TypeError(f"{'/'.join(path)}: a {type(tree).__name__} cannot be saved.")


def _part(key: int | str) -> str:
    """Write a key such that no two keys of a dict, or paths of a tree, are written alike."""
    if isinstance(key, int):
        return str(key)
    return json.dumps(key) if key.lstrip("-").isdigit() or set(key) & set('/"') else key


def _aliases(tensors: Tensors) -> dict[str, str]:
    """Map each tensor that is another one in memory to the first of them; what only overlaps is written twice."""
    first: dict[object, str] = {}
    aliases = {}
    for name, tensor in tensors.items():
        if type(tensor) not in {Tensor, nn.Parameter, nn.Buffer}:
            raise TypeError(f"{name}: a {type(tensor).__name__} cannot be saved; gather or unpack it first.")
        if not tensor.numel():
            continue
        place = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        if first.setdefault(place, name) != name:
            aliases[name] = first[place]
    return aliases


def _header(tensors: Tensors, kinds: Mapping[str, torch.dtype], aliases: Mapping[str, str]) -> bytes:
    """Describe where each tensor will lie."""
    orders = {name: order for name in kinds if (order := _turned(tensors[name]))}
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


def _turned(tensor: Tensor) -> list[int]:
    """Return the order of the dimensions in memory, slowest first, where it is not the usual one."""
    if tensor.is_contiguous():
        return []
    order = sorted(range(tensor.dim()), key=tensor.stride().__getitem__, reverse=True)
    return order if tensor.permute(order).is_contiguous() else []


def _content(tensor: Tensor, kind: torch.dtype) -> memoryview:
    """Return the bytes of a tensor, copied only where device, format or order ask for it."""
    plain = tensor.detach().to("cpu", kind).contiguous().reshape(-1).view(torch.uint8)
    return plain.numpy().data
