"""Faults: processes that die at random moments."""

import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

from utils.dataset import corrections
from utils.dataset.clip import APPROVED
from utils.dataset.manifest import book_of
from utils.paths import ROOT
from utils.soak.subject import PATIENCE, Lost, Subject

ADDRESS = re.compile(r"page is at (\S+)")
REASON = "noisy to my ear"


def training_killed(subject: Subject, dice: random.Random) -> None:
    """Kill the training at a random moment, in the middle of a save as well."""
    subject.work()
    time.sleep(dice.uniform(0, 1.5))
    subject.kill()
    subject.check()
    subject.check_goes_on(subject.saved())


def training_killed_early(subject: Subject, dice: random.Random) -> None:
    """Kill the training while it starts or goes on, before its first update."""
    subject.work()
    subject.kill()
    saved, count = subject.saved(), len(subject.told("started"))
    subject.resume()
    subject.until(lambda: len(subject.told("started")) > count, "it does not start")
    time.sleep(dice.uniform(0, 3))
    subject.kill()
    subject.check()
    subject.check_goes_on(saved)


def training_asked_to_end(subject: Subject, dice: random.Random) -> None:
    """Send the request to end that a system sends at its shutdown; the run saves first."""
    subject.work()
    time.sleep(dice.uniform(0, 1))
    last = len(subject.told("train"))
    os.kill(subject.training.read_state().pid, signal.SIGTERM)
    subject.ended()
    if subject.saved() < int(str(subject.told("train")[last - 1]["step"])):
        raise Lost("it ended without saving")
    subject.check()
    subject.check_goes_on(subject.saved())


def page_killed(subject: Subject, dice: random.Random) -> None:
    """Kill the page, and the command that started the training, while it trains; open the page again."""
    subject.close()
    subject.run = None
    words = ["-m", "utils", "train", "--config", str(_settings(subject)), "--output-path", str(subject.project.root)]
    starter = subprocess.Popen([sys.executable, *words], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subject.find_run()
    page, _ = _page(subject.project.root.parent)
    subject.go_on()
    time.sleep(dice.uniform(0, 1))
    for process in (page, starter):
        process.kill()
        process.wait()
    subject.go_on()
    page, address = _page(subject.project.root.parent)
    with closing(urllib.request.urlopen(address)) as answer:  # noqa: S310  # our own page
        status = answer.status
    page.kill()
    page.wait()
    if status != 200:
        raise Lost(f"the page answers {status}")
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
    if not receiving.poll(PATIENCE):
        raise Lost("no clip was edited")
    time.sleep(dice.uniform(0, 1))
    editor.kill()
    editor.join()
    done = _received(receiving)
    now = subject.read_clips()
    reasons = [now[name].reason for name in subject.clips]
    if reasons not in [[APPROVED if count % 2 else REASON] * len(now) for count in (done, done + 1)]:
        raise Lost(f"after {done} edits the clips say {reasons}")
    if {name: clip.text for name, clip in now.items()} != {name: clip.text for name, clip in subject.clips.items()}:
        raise Lost("texts have changed")
    corrections.restore(subject.project.dataset, list(now))
    corrections.approve(subject.project.dataset, ["r-1", "r-2"])
    subject.clips = subject.read_clips()


def edit(folder: Path, done: Connection) -> None:
    """Approve all clips, then set all aside, and so on; tell each change that is done."""
    names = sorted(book_of(folder).read().clips)
    for count in range(1, 10_000):
        if count % 2:
            corrections.approve(folder, names)
        else:
            corrections.set_aside(folder, names, REASON)
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


def _page(output: Path) -> tuple["subprocess.Popen[str]", str]:
    """Open the page as a person does; return its process and its address."""
    page = subprocess.Popen(
        [sys.executable, "xtts_demo.py", "--output", str(output), "--port", "7960"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )
    for line in page.stdout or ():
        if found := ADDRESS.search(line):
            return page, found[1]
    page.kill()
    page.wait()
    raise Lost("the page does not open")
