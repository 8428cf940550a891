"""What the page answers to real requests: nothing outside the project folders, nobody without the password."""

import http.client
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from gradio_client import Client  # type: ignore[import-untyped]

from tests.ui import inside
from utils import runs
from utils.core.paths import ROOT, Project
from utils.ui import gradio_server

pytestmark = pytest.mark.slow

WHO = gradio_server.Credentials("abebe", "a secret")


@pytest.fixture(scope="module")
def address(output: Path) -> Iterator[inside.Address]:
    with inside.launched(output, 7940) as found:
        yield found


def ask(address: inside.Address, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize(("place", "sandboxed"), [("page.svg", True), ("", False)])
def test_browsers_are_told_what_not_to_do_with_answers(
    address: inside.Address, output: Path, place: str, sandboxed: bool
) -> None:
    (output / "page.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>")
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)
    connection.request("GET", f"/gradio_api/file={quote(str(output / place))}" if place else "/")
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "SAMEORIGIN"
    assert (answer.headers.get("Content-Security-Policy") == "sandbox") is sandboxed
    connection.close()


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../../../../etc/passwd",
        "{output}/../../../../../../etc/passwd",
        "{root}/xtts_demo.py",
        "utils/config/train.py",
        "requirements.txt",
        "{stranger}",
        "{temp}/gradio",
        "{output}/link",
        "file:///etc/passwd",
        "https://example.org/x",
        "/proc/self/environ",
    ],
)
@pytest.mark.parametrize("coded", [False, True])
def test_files_outside_the_project_folders_are_refused(
    address: inside.Address, output: Path, tmp_path: Path, path: str, coded: bool
) -> None:
    link = output / "link"
    if not link.is_symlink():
        link.symlink_to("/etc/passwd")
    stranger = tmp_path / "secret.wav"
    stranger.write_text("secret", encoding="utf-8")
    path = path.format(output=output, root=ROOT, stranger=stranger, temp=tempfile.gettempdir())
    status, body = ask(address, f"/gradio_api/file={quote(path, safe='' if coded else '/:')}")
    assert status in {403, 404}
    assert b"root:" not in body
    assert body != b"secret"


def test_files_of_a_project_are_given(address: inside.Address, output: Path) -> None:
    (output / "sound.txt").write_text("selam", encoding="utf-8")
    assert ask(address, f"/gradio_api/file={output}/sound.txt") == (200, b"selam")


def test_uploads_land_in_the_folder_of_the_projects(address: inside.Address, output: Path) -> None:
    body = b'--x\r\nContent-Disposition: form-data; name="files"; filename="../../evil.txt"\r\n\r\nhello\r\n--x--\r\n'
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)
    connection.request("POST", "/gradio_api/upload", body, {"Content-Type": "multipart/form-data; boundary=x"})
    answer = connection.getresponse().read().decode()
    connection.close()
    (landed,) = (output / ".uploads").rglob("evil.txt")
    assert str(landed) in answer
    assert landed.is_relative_to(output / ".uploads")


def test_other_sites_in_the_same_browser_are_refused(address: inside.Address) -> None:
    assert ask(address, "/", Host="evil.example")[0] == 403
    assert ask(address, "/gradio_api/upload", "POST", Origin="http://evil.example")[0] == 403
    assert ask(address, "/gradio_api/run/predict", "POST", Origin="null")[0] == 403


def test_a_program_can_drive_the_page(address: inside.Address, output: Path) -> None:
    client = Client(address.url, verbose=False)
    client.predict(project="default", seconds=600, api_name="/rehearse")
    (run,) = runs.list_runs(Project(output / "default"))
    try:
        with pytest.raises(Exception, match="rehearse"):
            client.predict("default", run.name, "en", api_name="/delete_run")
        assert run.folder.is_dir()
        client.predict("default", run.name, "en", api_name="/stop_now")
        assert run.current_state().status is runs.Status.STOPPED
        client.predict("default", run.name, "en", api_name="/delete_run")
        assert not run.folder.exists()
    finally:
        if run.folder.exists():
            runs.stop_now(run)


@pytest.mark.parametrize("run", ["../../etc", "no-such-run", None, 5, {"a": 1}])
def test_no_run_outside_the_project_can_be_named(address: inside.Address, run: object) -> None:
    with pytest.raises(Exception, match=r"folder name|no run"):
        Client(address.url, verbose=False).predict("default", run, "en", api_name="/delete_run")


def test_a_name_that_is_none_makes_no_project(address: inside.Address, output: Path) -> None:
    before = list(output.iterdir())
    client = Client(address.url, verbose=False)
    for name in ("../up", "\U00010280" * 64, {"a": 1}):
        assert "value" not in client.predict(name, "en", api_name="/open_project")
    assert list(output.iterdir()) == before


def test_a_project_is_made_once_and_found_again(address: inside.Address, output: Path) -> None:
    client = Client(address.url, verbose=False)
    for _ in range(2):
        assert client.predict(" አንድ ", "en", api_name="/open_project")["value"] == "አንድ"
    assert [path.name for path in output.iterdir() if path.name.strip() == "አንድ"] == ["አንድ"]


def test_a_run_with_a_damaged_file_can_still_be_chosen_and_deleted(address: inside.Address, output: Path) -> None:
    run = runs.Run(output / "damaged" / "runs" / "r1")
    (run.folder / "events.jsonl").mkdir(parents=True)
    run.write_state(runs.State("rehearse", runs.Status.STOPPED, created=time.time()))
    client = Client(address.url, verbose=False)
    chosen, facts, *_ = client.predict("damaged", "r1", "en", api_name="/show_run")
    assert chosen["choices"] == [["r1 · stopped", "r1"]]
    assert "cannot be read" in facts
    client.predict("damaged", "r1", "en", api_name="/delete_run")
    assert not run.folder.exists()


def test_a_visitor_without_the_password_sees_nothing(tmp_path: Path) -> None:
    with inside.launched(tmp_path, 7945, WHO) as found:
        (tmp_path / "sound.txt").write_text("selam", encoding="utf-8")
        for path in ("/config", "/gradio_api/info", f"/gradio_api/file={tmp_path}/sound.txt"):
            assert ask(found, path)[0] == 401
        Client(found.url, auth=(WHO.user, WHO.password), verbose=False)
