"""Helpers that read the built page: its events and their inputs."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
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


def called_with(event: BlockFunction) -> tuple[list[Any], dict[str, Any]]:
    """What the handler is called with on an untouched page: positional values, with gradio's own, and named ones."""
    names = list(event.input_keyword_names or [])
    number = len(event.inputs) - len(names)
    values = [value_of(block) for block in event.inputs[:number]]
    for position, parameter in enumerate(parameters_of(event).values()):
        kind = parameter.annotation
        if isinstance(kind, type) and issubclass(kind, gr.Request | gr.EventData | gr.Progress):
            values.insert(position, request())
    return values, {name: value_of(block) for name, block in zip(names, event.inputs[number:], strict=True)}


def function_of(event: BlockFunction) -> Callable[..., Any]:
    assert event.fn is not None
    return event.fn


def parameters_of(event: BlockFunction) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(inspect.unwrap(function_of(event))).parameters


def request() -> gr.Request:
    return gr.Request(session_hash="an audit", headers={})


def respond(blocks: gr.Blocks, event: BlockFunction, values: list[Any], state: SessionState) -> list[Any]:
    """Respond to an event as the server does."""
    clicked = gr.EventData(None, {"clip": "x"})
    response = blocks.process_api(event, values, state=state, request=request(), event_data=clicked)
    with ThreadPoolExecutor(1) as thread:  # the browser of other tests has a loop of its own in this thread
        data: list[Any] = thread.submit(asyncio.run, response).result()["data"]
    return data


def fits(event: BlockFunction, returned: Any) -> bool:
    """Whether a returned value has one part for each output."""
    number = len(event.outputs)
    if isinstance(returned, dict) and not returned.get("__type__"):
        return set(returned) <= set(event.outputs) or number == 1
    if number == 1:
        return not isinstance(returned, tuple)
    return returned is None if number == 0 else isinstance(returned, tuple | list) and len(returned) == number
