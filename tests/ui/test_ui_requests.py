"""What the page answers to real requests: nothing outside the project folders, nobody without the password."""

import contextlib
import http.client
import json
import re
import shutil
import socket
import struct
import tempfile
import time
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import quote

import gradio
import pytest
from gradio_client import Client  # type: ignore[import-untyped]

from tests.ui import inside
from utils.core.paths import ROOT
from utils.server import page as page_server

pytestmark = pytest.mark.slow

SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>"
HIDDEN = (  # until the login
    "/config",
    "/gradio_api/info",
    "/docs",
    "/openapi.json",
    "/gradio_api/openapi.json",
    "/manifest.json",
    "/config/",
    "/gradio_api/startup-events",
    "/gradio_api/app_id",
    "/gradio_api/heartbeat/a",
    "/gradio_api/dev/reload",
    "/logout",
)
WHO = page_server.Credentials("abebe", "a secret")


@pytest.fixture(scope="module")
def address(output: Path) -> Iterator[inside.Address]:
    (output / "page.svg").write_bytes(SVG)
    (output / "link").symlink_to("/etc/passwd")
    with inside.launched(output, 7940) as address:
        yield address


def request(
    address: inside.Address, path: str, method: str = "GET", body: bytes | None = None, **headers: Any
) -> tuple[int, bytes, Message]:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)) as connection:
        sent = address.headers | {name.replace("_", "-"): text for name, text in headers.items()}
        connection.request(method, path, body, sent)
        response = connection.getresponse()
        return response.status, response.read(), response.headers


def test_files_of_a_project_are_served_with_security_headers(address: inside.Address, output: Path) -> None:
    for path, policy in ((f"/gradio_api/file={output}/page.svg", "sandbox"), ("/", None)):
        status, body, headers = request(address, path)
        assert (status, headers["X-Content-Type-Options"]) == (200, "nosniff")
        assert headers["X-Frame-Options"] == "SAMEORIGIN"
        assert headers.get("Content-Security-Policy") == policy
        assert policy is None or body == SVG


def test_a_script_that_one_visitor_breaks_off_is_whole_for_the_next(address: inside.Address) -> None:
    scripts = set(re.findall(r"assets/[\w.-]+[.]js", request(address, "/")[1].decode()))
    for script in scripts:
        with socket.create_connection(("127.0.0.1", address.port)) as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closes with a reset
            line.sendall(f"GET /{script} HTTP/1.1\r\nHost: localhost\r\nCookie: {address.cookie}\r\n\r\n".encode())
            line.recv(100)
    for script in scripts:
        status, body, _ = request(address, f"/{script}")
        assert (status, len(body)) == (
            200,
            (Path(gradio.__file__).parent / "templates/frontend" / script).stat().st_size,
        )


def test_without_the_token_nothing_is_shown(address: inside.Address, output: Path) -> None:
    stranger = address._replace(token="")
    wrong: list[dict[str, Any]] = [{}, {"Cookie": "amharic-tts-7940=x"}, {"Authorization": "Bearer x"}]
    for path in (*HIDDEN, "/", "/assets/index.js", "/theme.css", f"/gradio_api/file={output}/page.svg"):
        assert {request(stranger, path, **headers)[0] for headers in wrong} == {401}
    assert request(stranger, "/?token=x")[0] == 401
    assert request(stranger, f"/config?token={address.token}")[0] == 401
    assert request(stranger, "/gradio_api/run/predict", "POST", b"{}")[0] == 401


def test_the_printed_address_gives_the_browser_a_cookie(address: inside.Address) -> None:
    stranger = address._replace(token="")
    status, _, headers = request(stranger, f"/?token={address.token}")
    assert (status, headers["Location"]) == (303, "/")
    assert headers["Set-Cookie"].startswith(address.cookie)
    assert "HttpOnly" in headers["Set-Cookie"]
    assert "samesite=lax" in headers["Set-Cookie"].lower()
    assert "Domain" not in headers["Set-Cookie"]
    assert request(stranger, "/config", Cookie=address.cookie)[0] == 200


@pytest.mark.parametrize("path", ["/gradio_api/dev/reload", "/gradio_api/vibe-code/", "/docs", "/openapi.json"])
def test_what_the_page_does_not_need_is_off(address: inside.Address, path: str) -> None:
    assert request(address, path)[0] == 404


def test_no_header_of_a_visitor_changes_where_the_page_thinks_it_is(address: inside.Address) -> None:
    _, plain, _ = request(address, "/config")
    headers: dict[str, Any] = {
        "X_Forwarded_Host": "evil.example",
        "X_Forwarded_Proto": "https",
        "X_Gradio_Server": "http://evil.example",
    }
    assert b"evil" not in request(address, "/config", **headers)[1]
    assert json.loads(request(address, "/config", **headers)[1])["root"] == json.loads(plain)["root"]


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../../../../etc/passwd",
        "{output}/../../../../../../etc/passwd",
        "{output}/link",
        "{root}/xtts_demo.py",
        "utils/config/train.py",
        "requirements.txt",
        "{stranger}",
        "{temp}/gradio",
        "file:///etc/passwd",
        "https://example.org/x",
        "/proc/self/environ",
    ],
)
@pytest.mark.parametrize("coded", [False, True])
def test_files_outside_the_project_folders_are_refused(
    address: inside.Address, output: Path, tmp_path: Path, path: str, coded: bool
) -> None:
    stranger = tmp_path / "secret.wav"
    stranger.write_text("secret", encoding="utf-8")
    path = path.format(output=output, root=ROOT, stranger=stranger, temp=tempfile.gettempdir())
    status, body, _ = request(address, f"/gradio_api/file={quote(path, safe='' if coded else '/:')}")
    assert status in {403, 404}
    assert b"root:" not in body
    assert body != b"secret"


def test_a_visitor_cannot_name_a_file_of_this_computer_as_an_upload(
    address: inside.Address, output: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text("a secret that nobody reads", encoding="utf-8")
    config = json.loads(request(address, "/config")[1])
    file = {"path": str(secret), "meta": {"_type": "gradio.FileData"}}
    for event in config["dependencies"]:
        body = {"fn_index": event["id"], "data": [file] * len(event["inputs"]), "session_hash": "a"}
        request(address, "/gradio_api/run/predict", "POST", json.dumps(body).encode(), Content_Type="application/json")
    assert list(output.rglob("*secret*")) == []


def test_uploads_are_saved_in_the_folder_of_the_projects(address: inside.Address, output: Path) -> None:
    body = b'--x\r\nContent-Disposition: form-data; name="files"; filename="../../evil.txt"\r\n\r\nhello\r\n--x--\r\n'
    kind = "multipart/form-data; boundary=x"
    _, response, _ = request(address, "/gradio_api/upload", "POST", body, Content_Type=kind)
    (uploaded,) = (output / ".uploads").rglob("evil.txt")
    assert str(uploaded) in response.decode()


def test_an_upload_that_does_not_fit_on_the_disk_is_refused_with_a_sentence(
    address: inside.Address, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("utils.server.page.SPARE", shutil.disk_usage(output).free)
    kind = "multipart/form-data; boundary=x"
    status, answer, _ = request(address, "/gradio_api/upload", "POST", b"--x--\r\n", Content_Type=kind)
    assert (status, b"The disk is full" in answer) == (507, True)


def test_other_sites_in_the_same_browser_are_refused(address: inside.Address) -> None:
    assert request(address, "/", Host="evil.example")[0] == 403
    assert request(address, "/gradio_api/upload", "POST", Origin="http://evil.example")[0] == 403
    assert request(address, "/gradio_api/run/predict", "POST", Origin="null")[0] == 403


def test_an_invalid_name_makes_no_project(address: inside.Address, output: Path) -> None:
    before, client = list(output.iterdir()), Client(address.url, headers=address.headers, verbose=False)
    for name in ("../../etc", "a/b", "", None, 5):
        result = str(client.predict(name, {}, "en", api_name="/train"))
        assert "folder name" in result or "name is empty" in result
    assert list(output.iterdir()) == before


def test_a_visitor_without_the_password_sees_nothing(tmp_path: Path) -> None:
    (tmp_path / "sound.txt").write_text("selam", encoding="utf-8")
    with inside.launched(tmp_path, 7945, WHO) as page:
        for path in (*HIDDEN, "//login", f"/gradio_api/file={tmp_path}/sound.txt"):
            assert request(page, path)[0] == 401
        assert request(page, "/")[0] == request(page, "/theme.css")[0] == 200
        Client(page.url, auth=(WHO.user, WHO.password), verbose=False)


def test_new_addresses_do_not_speed_up_guesses(tmp_path: Path) -> None:
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    with inside.launched(tmp_path, 7945, WHO) as page:
        began, statuses = time.monotonic(), list[int]()
        for guess in range(4):
            tricks = {"X_Forwarded_For": f"10.0.0.{guess}", "X_Real_IP": f"10.0.0.{guess}", "Forwarded": f"for={guess}"}
            statuses.append(request(page, "/login", "POST", b"username=a&password=b", **form, **tricks)[0])
        assert statuses == [400] * 4
        assert time.monotonic() - began >= 0.25 + 0.5 + 1


def test_little_is_done_before_the_login(tmp_path: Path) -> None:
    form = "application/x-www-form-urlencoded"
    with inside.launched(tmp_path, 7945, WHO) as page:
        for path, status in (("/login", 413), ("/gradio_api/queue/join", 401), ("/gradio_api/upload", 401)):
            assert request(page, path, "POST", b"0" * 20_000, Content_Type="application/json")[0] == status
        began = time.monotonic()
        for path in ("/login/", "/login", "/login/"):
            assert request(page, path, "POST", b"username=a&password=b", Content_Type=form)[0] == 400
        assert time.monotonic() - began >= 0.25 + 0.5


def test_the_browser_keeps_only_scripts(address: inside.Address) -> None:
    _, page, _ = request(address, "/")
    script = re.search(rb"assets/[\w.-]+[.]js", page)
    assert script
    first, second = (request(address, f"/{script[0].decode()}") for _ in range(2))
    assert first[0] == 200
    assert first[:2] == second[:2]
    assert all("immutable" in headers["Cache-Control"] for *_, headers in (first, second))
    assert "immutable" not in request(address, "/")[2].get("Cache-Control", "")
