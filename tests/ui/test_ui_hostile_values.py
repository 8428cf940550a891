"""Every endpoint of the page, sent values that no browser sends: it answers with a result or a refusal, never a 500.

``SOAK_CALLS=5000`` makes that many random calls, with values that ``SOAK_SEED`` chooses.
"""

import contextlib
import gc
import http.client
import json
import os
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.ui import inside
from utils import ui
from utils.studio import projects
from utils.ui.page import Panel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CALLS, SEED = int(os.environ.get("SOAK_CALLS", "100")), os.environ.get("SOAK_SEED", "5")
FILE = {"_type": "gradio.FileData"}
ANYTHING: list[object] = [
    None,
    True,
    0,
    -1,
    1e308,
    "",
    "x" * 5000,
    "a\nb",
    "\0",
    "\ud800",
    "../../etc",
    "~\0",
    "<img src=x>",
    [],
    [[]],
    [None],
    [[["x"]]],
    {},
    {"a": 1},
    [{"a": 1}],
    {"a": []},
    {"settings": None},
    {"path": 5},
    {"path": []},
    {"meta": FILE},
    {"meta": {}, "path": "x"},
    {"meta": {"_type": 5}, "path": 5},
    {"path": None, "meta": FILE},
    {"path": {}, "meta": FILE},
    {"path": "", "meta": FILE},
    {"path": "\0", "meta": FILE},
    {"path": "x" * 5000, "meta": FILE},
    {"path": "/etc/passwd", "meta": FILE},
    {"path": "x", "meta": FILE, "size": "a", "orig_name": 5},
    {"path": "x", "url": "http://[::1", "meta": FILE},
    [{"path": 5, "meta": FILE}],
    [[{"path": "x", "meta": FILE}]],
    [{"path": "x", "meta": FILE}, None, 5],
]
WORST: list[object] = [
    -1,
    "x" * 5000,
    "~nosuch/x",
    [[]],
    {"settings": 5},
    {"path": 5, "meta": FILE},
    {"path": "x", "meta": None},
]


class Endpoint(NamedTuple):
    id: int
    name: str
    usual: list[Any]  # what an untouched page sends


class Endpoints(NamedTuple):
    address: inside.Address
    all: list[Endpoint]
    acts: list[str]  # what the buttons of the page do
    fields: list[str]  # what they send with it

    @property
    def panels(self) -> list[Endpoint]:
        return [endpoint for endpoint in self.all if endpoint.name.startswith("_act")]

    def answer(self, endpoint: Endpoint, data: object, sent: object = None) -> tuple[int, str]:
        """Call an endpoint."""
        body = json.dumps({"fn_index": endpoint.id, "data": data, "session_hash": "a", "event_data": sent})
        headers = self.address.headers | {"Content-Type": "application/json"}
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.address.port, timeout=60)) as line:
            line.request("POST", "/gradio_api/run/predict", body.encode(), headers)
            response = line.getresponse()
            return response.status, response.read().decode()

    def problem(self, endpoint: Endpoint, data: object, sent: object = None) -> str:
        """Call an endpoint; return what went wrong."""
        status, answer = self.answer(endpoint, data, sent)
        is_answered = status == 200 or (400 <= status < 500 and answer)
        return "" if is_answered and "Internal error" not in answer else f"{endpoint.name} {data!r:.200}: {answer:.200}"

    def problems(self, calls: Iterable[tuple[Any, ...]]) -> list[str]:
        """Make calls, each an endpoint and what it is sent; return what went wrong."""
        return [problem for call in calls if (problem := self.problem(*call))]


@pytest.fixture(scope="module")
def endpoints(output: Path) -> Iterator[Endpoints]:
    projects.create("voice", output)
    for name in ("my (new) project", "<img src=x onerror=alert(1)>"):
        (output / name).mkdir()
    with inside.launched(output, 7960) as address:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", address.port, timeout=60)) as line:
            line.request("GET", "/config", headers=address.headers)
            config = json.loads(line.getresponse().read())
        values = {widget["id"]: widget["props"].get("value") for widget in config["components"]}
        values |= {w["id"]: "voice" for w in config["components"] if w["props"].get("elem_id") == "project"}
        listed = [event for event in config["dependencies"] if event["backend_fn"]]
        # by type: an object that is asked for its class may be a reference to one that is gone
        panels = [each for each in gc.get_objects() if issubclass(type(each), Panel)]
        sources = "".join(path.read_text(encoding="utf-8") for path in Path(ui.__file__).parent.rglob("*.py"))
        fields = set(re.findall(r'\.(?:text|number|get|typed_on)\("(\w+)"', sources))
        yield Endpoints(
            address,
            [Endpoint(e["id"], e["api_name"], [values[number] for number in e["inputs"]]) for e in listed],
            sorted({act for panel in panels for act in panel.actions}),
            sorted(fields - {"path"}),  # which gradio takes for a file
        )


@pytest.mark.parametrize("value", ANYTHING, ids=range(len(ANYTHING)))
def test_no_endpoint_fails_where_every_value_is_hostile(endpoints: Endpoints, value: object) -> None:
    clicked = {"act": value, "path": value}
    assert endpoints.problems((each, [value] * len(each.usual), clicked) for each in endpoints.all) == []


@pytest.mark.parametrize("value", WORST, ids=range(len(WORST)))
def test_no_endpoint_fails_at_one_hostile_value(endpoints: Endpoints, value: object) -> None:
    calls = (
        (each, [*each.usual[:place], value, *each.usual[place + 1 :]])
        for each in endpoints.all
        for place in range(len(each.usual))
    )
    assert endpoints.problems(calls) == []


@pytest.mark.parametrize("sent", [5, "x", [], [5], {"act": {"a": 1}}, {"act": "open", "of": [], "text": {}}], ids=str)
def test_no_endpoint_fails_at_hostile_data_of_a_click(endpoints: Endpoints, sent: object) -> None:
    assert endpoints.problems((each, each.usual, sent) for each in endpoints.all) == []


@pytest.mark.parametrize("data", [[], ["x"] * 20, {}, None, 5, "x"], ids=str)
def test_no_endpoint_fails_at_data_of_another_shape(endpoints: Endpoints, data: object) -> None:
    assert endpoints.problems((each, data) for each in endpoints.all) == []


def test_no_endpoint_fails_at_random_hostile_values(endpoints: Endpoints) -> None:
    rng = random.Random(SEED)
    calls = []
    for number in range(CALLS):
        endpoint = endpoints.all[number % len(endpoints.all)]
        data = [hostile(value, rng) if rng.random() < 0.3 else value for value in endpoint.usual]
        calls.append((endpoint, data, hostile({"act": "open", "of": "voice"}, rng)))
    assert endpoints.problems(calls) == []


def test_no_button_fails_at_random_values_of_the_right_kind(endpoints: Endpoints) -> None:
    rng = random.Random(SEED)
    calls = []
    for _ in range(CALLS):
        endpoint = rng.choice(endpoints.panels)
        data = [of_its_kind(value, rng) if rng.random() < 0.1 else value for value in endpoint.usual]
        sent = {name: of_its_kind("", rng) for name in rng.sample(endpoints.fields, 6)}
        calls.append((endpoint, data, sent | {"act": rng.choice(endpoints.acts)}))
    assert endpoints.problems(calls) == []


def test_no_panel_shows_html_that_was_sent(endpoints: Endpoints) -> None:
    sent = dict.fromkeys(endpoints.fields, "<i>sent</i>")
    answers = [endpoints.answer(panel, panel.usual, sent) for panel in endpoints.panels]
    assert {status for status, _ in answers} == {200}
    assert [answer for _, answer in answers if "<i>sent" in answer] == []


def of_its_kind(value: Any, rng: random.Random) -> Any:
    """Replace a value by one that passes the page's check of kinds, so that a handler gets it."""
    match value:
        case bool():
            return not value
        case str():
            texts = [text for text in ANYTHING + WORST if isinstance(text, str)]
            return rng.choice([*texts, "voice", "sample", "1", "-1", "1e308", "nan", "am", "/etc/passwd"])
        case int() | float():
            return rng.choice([0, -1, 0.5, 2**63, -(10**20), 1e308])
        case list():
            return [of_its_kind(item, rng) for item in value] * rng.choice([0, 1, 3])
        case dict():
            return {key: of_its_kind(item, rng) if rng.random() < 0.3 else item for key, item in value.items()}
    return value


def hostile(value: Any, rng: random.Random) -> Any:
    """Replace a value or a part of it, or put it into another."""
    if rng.random() < 0.3 and isinstance(value, str):
        at = rng.randrange(len(value) + 1)
        return value[:at] + rng.choice([text for text in ANYTHING if isinstance(text, str)]) + value[at:]
    if rng.random() < 0.5 and isinstance(value, list | dict) and value:
        changed = value.copy()
        key = rng.choice(range(len(value)) if isinstance(value, list) else [*value])
        changed[key] = hostile(value[key], rng)
        return changed
    return rng.choice([rng.choice(ANYTHING + WORST), [value], {"value": value}, [value, rng.choice(ANYTHING)]])
