"""Faults: processes that die at random moments."""

import contextlib
import multiprocessing
import random
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from tests.soak.clips import GOOD, REASON
from tests.soak.subject import PATIENCE, POLL, Lost, Subject
from utils import runs
from utils.core.events import read_tail
from utils.core.paths import ROOT
from utils.dataset.clip import APPROVED
from utils.dataset.editor import approve, exclude, restore
from utils.dataset.store import load_dataset
from utils.runs import Status

ADDRESS = re.compile(r"page is at (\S+)\n")


def training_killed(subject: Subject, dice: random.Random) -> None:
    """Kill the training at a random moment, in the middle of a save as well."""
    subject.work()
    time.sleep(dice.uniform(0, 1.5))
    subject.kill()
    subject.check()
    subject.check_goes_on()


def training_killed_early(subject: Subject, dice: random.Random) -> None:
    """Kill the training while it starts or goes on, before its first update."""
    subject.work()
    subject.kill()
    count = len(subject.told("started"))
    runs.resume(subject.training)
    subject.until(lambda: len(subject.told("started")) > count, "it does not start")
    time.sleep(dice.uniform(0, 3))
    subject.kill()
    subject.check()
    subject.check_goes_on()


def training_asked_to_end(subject: Subject, dice: random.Random) -> None:
    """Send the request to end that a system sends at its shutdown; the run saves first."""
    subject.work()
    time.sleep(dice.uniform(0, 1))
    last = len(subject.told("train"))
    subject.family[0].terminate()
    if (state := subject.ended()).status is not Status.STOPPED:
        raise Lost(f"it was asked to end and is {state.status}: {state.message}")
    if subject.saved() < int(str(subject.told("train")[last - 1]["step"])):
        raise Lost("it ended without saving")
    subject.check()
    subject.check_goes_on()


def page_killed(subject: Subject, dice: random.Random) -> None:
    """Kill the page, and the command that started the training, while it trains; open the page again."""
    subject.close()
    subject.run = None
    words = ["-m", "utils", "train", "--config", str(_settings(subject)), "--output-path", str(subject.project.root)]
    with _until_killed(words, subject.project.root / "starter.log"):
        subject.find_run()
        with _page(subject):
            subject.go_on()
            time.sleep(dice.uniform(0, 1))
    subject.go_on()
    with _page(subject) as address, urllib.request.urlopen(address, timeout=PATIENCE):  # our own page
        subject.go_on()
    subject.kill()
    subject.check()


def editor_killed(subject: Subject, dice: random.Random) -> None:
    """Kill a process that approves clips and sets them aside; everything that it said to be done is there."""
    spawn = multiprocessing.get_context("spawn")
    receiving, sending = spawn.Pipe(duplex=False)
    editor = spawn.Process(target=edit, args=(subject.project.dataset, sending), daemon=True)
    editor.start()
    sending.close()
    try:
        if not receiving.poll(PATIENCE):
            raise Lost("no clip was edited")
        time.sleep(dice.uniform(0, 1))
    finally:
        editor.kill()
        editor.join()
    done = _received(receiving)
    now = subject.read_clips()
    reasons = [now[name].reason for name in subject.clips]
    if reasons not in [[APPROVED if count % 2 else REASON] * len(now) for count in (done, done + 1)]:
        raise Lost(f"after {done} edits the clips say {reasons}")
    if {name: clip.text for name, clip in now.items()} != {name: clip.text for name, clip in subject.clips.items()}:
        raise Lost("texts have changed")
    restore(subject.project.dataset, list(now))
    approve(subject.project.dataset, GOOD)
    subject.clips = subject.read_clips()


def edit(folder: Path, done: Connection) -> None:
    """Approve all clips, then set all aside, and so on; tell each change that is done."""
    names = sorted(load_dataset(folder).clips)
    for count in range(1, 10_000):
        if count % 2:
            approve(folder, names)
        else:
            exclude(folder, names, REASON)
        done.send(count)


def _received(receiving: Connection) -> int:
    last = 0
    try:
        while receiving.poll():
            last = int(receiving.recv())
    except EOFError:
        pass
    return last


def _settings(subject: Subject) -> Path:
    path = subject.project.root / "soak.yaml"
    path.write_text(subject.config.to_yaml(), encoding="utf-8")
    return path


@contextlib.contextmanager
def _page(subject: Subject) -> Iterator[str]:
    """Open the page as a person does; give its address, and kill it at the end."""
    log = subject.project.root / "page.log"
    with _until_killed(["xtts_demo.py", "--output", str(subject.project.root.parent), "--port", "7960"], log):
        deadline = time.monotonic() + PATIENCE
        while not (found := ADDRESS.search(log.read_text(encoding="utf-8", errors="replace"))):
            if time.monotonic() > deadline:
                raise Lost(f"the page does not open: {read_tail(log)}")
            time.sleep(POLL)
        yield found[1]


@contextlib.contextmanager
def _until_killed(words: list[str], log: Path) -> Iterator[None]:
    """Let Python do something that is killed at the end, whatever happens."""
    call = [sys.executable, *words]
    with log.open("wb") as told, subprocess.Popen(call, cwd=ROOT, stdout=told, stderr=subprocess.STDOUT) as process:
        try:
            yield
        finally:
            process.kill()
