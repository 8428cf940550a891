"""How the page is started from a terminal."""

import http.client
import importlib.metadata
import inspect
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import gradio as gr
import pytest

import xtts_demo
from tests.ui.serving import serving
from utils.core.paths import ROOT


def test_help_and_a_wrong_password_need_no_gradio() -> None:
    look = "import sys, xtts_demo; xtts_demo.main(['--auth', 'nobody']); sys.exit('gradio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "user:password" in done.stderr


def test_the_page_comes_without_renewing_the_stubs_of_gradio(tmp_path: Path) -> None:
    nowhere = tmp_path / "a file"
    nowhere.touch()
    look = f"import xtts_demo; print(xtts_demo.main(['--output', {str(nowhere)!r}])); import gradio"
    look += "; print(gradio.component_meta.create_or_modify_pyi.__module__)"
    done = subprocess.run([sys.executable, "-c", look], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1", "utils.ui.gradio_server"], done.stderr


@pytest.mark.parametrize("component", [gr.Audio, gr.Button, gr.Dropdown, gr.HTML, gr.Textbox])
def test_the_stubs_of_gradio_come_with_it(component: type) -> None:
    shipped = {Path(file.locate()) for file in importlib.metadata.files("gradio") or []}
    assert Path(inspect.getfile(component)).with_suffix(".pyi") in shipped


def test_the_page_is_for_this_computer_unless_told_otherwise() -> None:
    arguments = xtts_demo.parser().parse_args([])
    assert (arguments.host, arguments.port, arguments.share) == ("127.0.0.1", 7860, False)


@pytest.mark.parametrize("word", ["-5", "0", "65536", "many", "²"])
def test_what_is_no_port_is_refused(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        xtts_demo.parser().parse_args([f"--port={word}"])
    assert "1-65535" in capsys.readouterr().err


@pytest.mark.slow
def test_a_taken_port_is_said_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        with serving(tmp_path / "output", "--port", str(taken)) as page:
            assert page.lines == [f"Port {taken} is in use; the page is at {page.url}\n"]


@pytest.mark.slow
def test_a_page_that_others_can_reach_asks_for_a_new_password(tmp_path: Path) -> None:
    with serving(tmp_path / "output", "--host", "0.0.0.0", "--port", "7970") as page:
        password = page.wait_for(r"user amharic, password (\S+)")
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(page.url).port or 0, timeout=10)
        connection.request("GET", "/config")
        assert connection.getresponse().status == 401
        connection.close()
        assert len(password) >= 12
