"""Helpers that read the built page and respond to its events."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gradio as gr
from gradio.block_function import BlockFunction
from gradio.blocks import Block
from gradio.state_holder import SessionState


def handlers(blocks: gr.Blocks) -> list[BlockFunction]:
    """Every event with a Python function."""
    return [event for event in blocks.fns.values() if event.fn is not None]


def name_of(event: BlockFunction) -> str:
    return str(event.api_name or event.name)


def value_of(block: Block) -> Any:
    """What a widget sends before anybody touched it; of a list in which nothing is chosen, the first choice."""
    value = getattr(block, "value", None)
    if value is None and isinstance(block, gr.Dropdown | gr.Radio) and block.choices and not is_many(block):
        return block.choices[0][1]
    if value is None and isinstance(block, gr.Textbox):
        return ""
    return value() if callable(value) else value


def is_many(block: Block) -> bool:
    return bool(getattr(block, "multiselect", False))


def function_of(event: BlockFunction) -> Callable[..., Any]:
    assert event.fn is not None
    return event.fn


def respond(
    blocks: gr.Blocks,
    event: BlockFunction,
    values: list[Any] | None = None,
    state: SessionState | None = None,
    **sent: Any,
) -> list[Any]:
    """Respond to an event as the server does, without values as to an untouched page of a new visitor."""
    values = [value_of(block) for block in event.inputs] if values is None else values
    clicked, request = gr.EventData(None, sent or {"clip": "x"}), gr.Request(session_hash="an audit", headers={})
    response = blocks.process_api(
        event, values, state=state or SessionState(blocks), request=request, event_data=clicked
    )
    with ThreadPoolExecutor(1) as thread:  # the browser of other tests has a loop of its own in this thread
        data: list[Any] = thread.submit(asyncio.run, response).result()["data"]
    return data


def click_of(blocks: gr.Blocks, panel: str) -> BlockFunction:
    """Return the event of the buttons of a panel."""
    html = next(block for block in blocks.blocks.values() if block.elem_id == panel)
    return next(event for event in blocks.fns.values() if (html._id, "click") in event.targets)


def act(
    blocks: gr.Blocks, panel: str, action: str, opened: str, given: Sequence[Any] = (), **fields: Any
) -> dict[Block, Any]:
    """Press a button of a panel, with the values of its inputs; return the update of each output."""
    event = click_of(blocks, panel)
    updates = respond(blocks, event, [None, opened, *given, "en"], act=action, **fields)
    return dict(zip(event.outputs, updates, strict=True))


def shown(blocks: gr.Blocks, panel: str, action: str, opened: str, given: Sequence[Any] = (), **fields: Any) -> str:
    """Press a button of a panel and return what the panel shows then."""
    updates = act(blocks, panel, action, opened, given, **fields)
    return next(str(update) for widget, update in updates.items() if widget.elem_id == panel)
