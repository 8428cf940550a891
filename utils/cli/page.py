"""Open the page in a browser. Only this computer can reach it, unless --host or --share is given."""

import argparse
import os
import sys
import webbrowser

from utils.cli.runs import add_output
from utils.core import VERSION
from utils.core.addresses import is_loopback

PORT = 7860
LAST_PORT = 65_535
VARIABLE = "AMHARIC_TTS_AUTH"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this computer only)")
    parser.add_argument("--port", type=port, default=PORT, help=f"first port to try (default: {PORT})")
    parser.add_argument("--share", action="store_true", help="create a public link through Gradio's servers")
    proxy = "address or network of a reverse proxy whose X-Forwarded headers are believed; may be repeated"
    parser.add_argument("--trusted-proxy", action="append", default=[], metavar="ADDRESS", help=proxy)
    parser.add_argument("--no-browser", action="store_true", help="do not open the page in a browser")
    secret = f"login for visitors; use the variable {VARIABLE} to hide it from other users of this computer"
    parser.add_argument("--auth", default="", metavar="USER:PASSWORD", help=secret)
    add_output(parser)
    parser.add_argument("--version", action="version", version=VERSION, help="print the version and exit")


def port(word: str) -> int:
    """Parse a port number."""
    if not word.isdecimal() or not 1 <= int(word) <= LAST_PORT:
        raise argparse.ArgumentTypeError(f"{word} is not a port; use 1-{LAST_PORT}")
    return int(word)


def run(arguments: argparse.Namespace) -> int:
    """Check the login before loading anything slow, then serve the page until Ctrl-C."""
    print("Starting the page ...", flush=True)
    exposed = arguments.share or not is_loopback(arguments.host) or bool(arguments.trusted_proxy)
    given = os.environ.pop(VARIABLE, "")  # child processes must not inherit it
    from utils.server.page import credentials  # these are slow, and --help needs neither

    who = credentials(arguments.auth or given, exposed=exposed)
    from utils.ui import app

    page = app.launch(
        arguments.output,
        host=arguments.host,
        port=arguments.port,
        share=arguments.share,
        who=who,
        proxies=arguments.trusted_proxy,
    )
    moved = page.port != arguments.port
    print(f"{f'Port {arguments.port} is in use; the' if moved else 'The'} page is at {page.link}", flush=True)
    if page.public_url:
        print(f"Public link: {page.public_url}", flush=True)
    if who and who.generated:
        print(f"Login for visitors: user {who.user}, password {who.password}", flush=True)
    if not arguments.no_browser and has_screen():
        webbrowser.open(page.link)
    page.wait()
    return 0


def has_screen() -> bool:
    """Tell whether a person at this computer started the page: a browser in a terminal would get in the way."""
    has_display = any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return sys.stdout.isatty() and (has_display or sys.platform in {"win32", "darwin"})
