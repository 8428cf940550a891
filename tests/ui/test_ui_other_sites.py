"""Pages of other sites, open in the same browser as the page, and a tunnel: they read and change nothing."""

import http.client
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.local_server import Handler, listening
from tests.ui.serving import Served, serving

pytestmark = pytest.mark.browser

WHO = "abebe:a-secret-of-ours"
PUBLIC = "abc.gradio.live"
# What a page can try: each request that its browser lets it make, with the cookies of the victim.
ATTACK = """async target => {
  const headers = [{}, {"X-Forwarded-Host": location.host}, {"X-Forwarded-For": "1.2.3.4"},
    {"Forwarded": "host=" + location.host}, {"X-Gradio-Server": location.origin}];
  const paths = ["/", "/config", "/gradio_api/info", "/gradio_api/heartbeat/abc", "/gradio_api/queue/data",
    "/gradio_api/run/predict", "/gradio_api/queue/join", "/gradio_api/upload", "/login", "/docs", "/openapi.json"];
  const read = [];
  for (const mode of ["cors", "no-cors"])
    for (const path of paths)
      for (const method of ["GET", "POST", ...(mode === "cors" ? ["PUT", "OPTIONS"] : [])])
        for (const sent of (mode === "cors" ? headers : [{}]))
          try {
            const body = method === "GET" ? undefined : "{}";
            const answer = await fetch(target + path, {method, mode, headers: sent, body, credentials: "include"});
            const text = await answer.text();
            if (text) read.push([method, path, text.slice(0, 80)]);
          } catch (error) { if (error.name !== "TypeError") read.push(String(error)); }
  for (const kind of ["img", "script", "iframe", "video"]) {
    const element = document.createElement(kind);
    element.src = target + "/config";
    const done = new Promise(resolve => { element.onload = () => resolve(kind); element.onerror = () => resolve(""); });
    document.body.append(element);
    const shown = await Promise.race([done, new Promise(resolve => setTimeout(() => resolve(""), 2000))]);
    let inside = "";
    try { inside = element.contentDocument?.body?.innerText || ""; } catch (error) { inside = ""; }
    if (inside || (shown && kind !== "iframe")) read.push([kind, shown, inside]);
  }
  return read;
}"""
FAKE_TUNNEL = """#!{python}
# What gradio's tunnel program does: a public port whose visitors reach the page from this computer.
import os, pathlib, socket, sys, threading, time
parent = os.getppid()
def end_with_page():
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(0)
threading.Thread(target=end_with_page).start()
port = int(sys.argv[sys.argv.index("-l") + 1])
public = socket.create_server(("127.0.0.1", 0))
pathlib.Path({file!r}).write_text(str(public.getsockname()[1]))
print("start proxy success: https://{host}", flush=True)
def pump(source, target):
    while data := source.recv(65536):
        target.sendall(data)
    target.close()
while True:
    visitor, _ = public.accept()
    page = socket.create_connection(("127.0.0.1", port))
    for pair in ((visitor, page), (page, visitor)):
        threading.Thread(target=pump, args=pair, daemon=True).start()
"""


@contextmanager
def other_site(name: str) -> Iterator[str]:
    """An empty page on another port of this computer."""
    with listening(Empty) as address:
        yield address.replace("127.0.0.1", name)


class Empty(Handler):
    def do_GET(self) -> None:  # noqa: N802  # as http.server calls it
        page = b"<!doctype html><link rel=icon href=data:,><title>another site</title><body>"
        self.answer_with(200, page, {"Content-Type": "text/html"})


@pytest.fixture(scope="module", params=["token", "password"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    words = ("--auth", WHO) if request.param == "password" else ()
    with serving(tmp_path_factory.mktemp("page") / "output", "--port", "7910", *words) as served:
        yield served


def enter(tab: Page, served: Served, name: str) -> str:
    """Open the page as its owner does, and return its origin."""
    tab.goto(served.link.replace("127.0.0.1", name))
    if "token" not in served.link:
        tab.locator("input").first.fill(WHO.partition(":")[0])
        tab.locator("input").nth(1).fill(WHO.partition(":")[2])
        tab.get_by_role("button", name="Login").click()
    expect(tab.locator("#readings")).to_contain_text("GiB free", timeout=60_000)
    assert "token" not in tab.url
    return served.url.replace("127.0.0.1", name)


@pytest.mark.parametrize("own", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("other", ["127.0.0.1", "localhost"])
def test_a_page_on_another_port_reads_and_sends_nothing(browser: Browser, page: Served, own: str, other: str) -> None:
    context = browser.new_context()
    target = enter(context.new_page(), page, own)
    with other_site(other) as site:
        tab = context.new_page()
        tab.goto(site)
        statuses: list[int] = []
        devtools = context.new_cdp_session(tab)  # sees the responses that the browser keeps from the other site
        devtools.on("Network.responseReceivedExtraInfo", lambda each: statuses.append(each["statusCode"]))
        devtools.send("Network.enable")
        assert tab.evaluate(ATTACK, target) == []
        assert len(statuses) >= 20
        assert set(statuses) == {403}
    context.close()


def test_a_link_on_another_site_opens_the_page(browser: Browser, page: Served) -> None:
    context = browser.new_context()
    target = enter(context.new_page(), page, "127.0.0.1")
    with other_site("localhost") as site:
        tab = context.new_page()
        tab.goto(site)
        tab.evaluate("target => { location.href = target; }", target)
        expect(tab.locator("#readings")).to_contain_text("GiB free", timeout=60_000)
    context.close()


def ask(port: int, host: str, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as line:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        line.request(method, path, b"username=a&password=b" if method == "POST" else None, {"Host": host, **sent})
        response = line.getresponse()
        return response.status, response.read()


def test_through_a_tunnel_only_its_public_host_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gradio import tunneling

    program = tmp_path / "hub" / "gradio" / "frpc" / tunneling.BINARY_FILENAME
    program.parent.mkdir(parents=True)
    port_file = tmp_path / "port"
    program.write_text(FAKE_TUNNEL.format(python=sys.executable, file=str(port_file), host=PUBLIC), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("GRADIO_SHARE_SERVER_ADDRESS", "127.0.0.1:1")
    monkeypatch.setenv("AMHARIC_TTS_AUTH", WHO)
    with serving(tmp_path / "output", "--port", "7915", "--share") as served:
        assert served.wait_for(r"Public link: (\S+)").endswith(PUBLIC)
        port, local = int(port_file.read_text()), urlsplit(served.url).port or 0
        form = {"Content_Type": "application/x-www-form-urlencoded"}
        assert ask(port, PUBLIC, "/")[0] == ask(port, "127.0.0.1", "/", X_Forwarded_Host=PUBLIC)[0] == 200
        assert ask(port, PUBLIC, "/config")[0] == 401
        for host in ("other.gradio.live", "evil.example", f"{PUBLIC}.evil.example"):
            assert ask(port, host, "/")[0] == ask(local, host, "/")[0] == 403
            assert ask(port, PUBLIC, "/", Origin=f"https://{host}", X_Forwarded_Host=host)[0] == 403
            assert host.encode() not in ask(port, PUBLIC, "/", X_Forwarded_Host=host)[1]
        assert ask(port, PUBLIC, "/login", "POST", Origin=f"https://{PUBLIC}", **form)[0] == 400
        assert ask(local, f"localhost:{local}", "/login", "POST", Origin=f"http://localhost:{local}", **form)[0] == 400
