"""The blocks of the page, which refuse values of another kind than a browser sends, before any handler sees them."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import gradio as gr
from gradio.block_function import BlockFunction
from gradio.blocks import Block
from gradio.processing_utils import check_all_files_in_cache

from utils.studio.facts import UsageError

MAX_NAME = 255  # bytes of one name in a path, on every system
PROJECT = "project"  # the box whose handlers check the value themselves
MALFORMED = (AttributeError, LookupError, OSError, TypeError, ValueError)  # what gradio's own checks end in


class CheckedBlocks(gr.Blocks):
    """Refuses malformed requests with one readable error."""

    async def process_api(self, *given: Any, **options: Any) -> dict[str, Any]:  # noqa: ANN401  # gradio's own
        if sent := options.get("event_data"):
            with refusing():
                require_characters(sent._data)  # noqa: SLF001
                check_all_files_in_cache(sent._data)  # noqa: SLF001
        return await super().process_api(*given, **options)

    async def preprocess_data(
        self,
        block_fn: BlockFunction,
        inputs: list[Any],
        *given: Any,  # noqa: ANN401
        **options: Any,  # noqa: ANN401
    ) -> list[Any]:
        with refusing():
            require_characters(inputs)
            require_kinds(block_fn.inputs, inputs)
            processed: list[Any] = await super().preprocess_data(block_fn, inputs, *given, **options)
        return processed


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    try:
        yield
    except MALFORMED as error:
        refusal = UsageError("malformed")
        raise gr.Error(escape(str(refusal)), print_exception=False) from error


def require_characters(sent: object) -> None:
    """Raise ValueError for half a character, which JSON can name, but no file or answer can contain."""
    json.dumps(sent, ensure_ascii=False, default=str).encode()


def require_kinds(blocks: Sequence[Block], values: Sequence[object]) -> None:
    for block, value in zip(blocks, values, strict=False):
        if value is not None and block.elem_id != PROJECT and not _fits(block, value):
            raise TypeError(block)


def _fits(block: Block, value: object) -> bool:
    match block:
        case gr.HTML():  # a form
            return isinstance(value, dict)
        case gr.Dropdown():  # of names and paths
            names = value.split("/") if isinstance(value, str) else []
            return isinstance(value, str) and all(len(name.encode(errors="replace")) <= MAX_NAME for name in names)
        case gr.Textbox() | gr.Radio():
            return isinstance(value, str)
        case gr.Checkbox():
            return isinstance(value, bool)
    return True
