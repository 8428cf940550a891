"""Faults: killed processes, damaged files, a clock that jumps, and files deleted while somebody uses them."""

import contextlib
import dataclasses
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from tests.soak.specimens import APPROVED_CLIPS, REASON
from tests.soak.subject import PATIENCE, Lost, Subject, wait_for
from utils import runs
from utils.core.errors import RunBusyError
from utils.core.events import read_tail
from utils.core.paths import ROOT
from utils.core.storage import DamagedError
from utils.dataset.clip import APPROVED
from utils.dataset.editor import approve, exclude, restore
from utils.dataset.store import load_dataset
from utils.runs import Status
from utils.workspace import projects
from utils.xtts import checkpoints

ADDRESS = re.compile(r"page is at (\S+)\n")
YEAR = 365 * 86_400.0


def training_killed(subject: Subject, rng: random.Random) -> None:
    """Kill the training at a random moment, possibly during a save."""
    subject.work()
    time.sleep(rng.uniform(0, 1.5))
    subject.kill_and_check()
    subject.check_resume()


def training_killed_early(subject: Subject, rng: random.Random) -> None:
    """Kill the training while it starts or resumes, before its first update."""
    subject.work()
    subject.kill()
    count = len(subject.events("started"))
    runs.resume(subject.training)
    subject.wait_until(lambda: len(subject.events("started")) > count, "it does not start")
    time.sleep(rng.uniform(0, 3))
    subject.kill_and_check()
    subject.check_resume()


def training_asked_to_stop(subject: Subject, rng: random.Random) -> None:
    """Send the signal that a system sends at its shutdown; the run saves first."""
    subject.work()
    time.sleep(rng.uniform(0, 1))
    last = int(str(subject.events("train")[-1]["step"]))
    subject.processes[0].terminate()
    if (state := subject.wait_for_end()).status is not Status.STOPPED:
        raise Lost(f"it was asked to stop and is {state.status}: {state.message}")
    if subject.saved() < last:
        raise Lost("it ended without saving")
    subject.check_and_resume()


def page_killed(subject: Subject, rng: random.Random) -> None:
    """Kill the page, and the command that started the training, during training; open the page again."""
    subject.close()
    subject.run = None
    settings = subject.project.root / "soak.yaml"
    settings.write_text(subject.config.to_yaml(), encoding="utf-8")
    words = ["-m", "utils", "train", "--config", str(settings), "--output-path", str(subject.project.root)]
    with _until_killed(words, subject.project.root / "launcher.log"):
        subject.find_run()
        with _page(subject):
            subject.advance()
            time.sleep(rng.uniform(0, 1))
    subject.advance()
    with _page(subject) as address, urllib.request.urlopen(address, timeout=PATIENCE):  # our own page
        subject.advance()
    subject.kill_and_check()


@contextlib.contextmanager
def _page(subject: Subject) -> Iterator[str]:
    """Open the page as a person does; yield its address, and kill it at the end."""
    log = subject.project.root / "page.log"
    with _until_killed(["xtts_demo.py", "--output", str(subject.project.root.parent), "--port", "7960"], log):
        match = wait_for(
            lambda: ADDRESS.search(log.read_text(encoding="utf-8", errors="replace")),
            lambda: f"the page does not open: {read_tail(log)}",
        )
        assert match
        yield match[1]


@contextlib.contextmanager
def _until_killed(words: list[str], log: Path) -> Iterator[None]:
    call = [sys.executable, *words]
    with log.open("wb") as output, subprocess.Popen(call, cwd=ROOT, stdout=output, stderr=output) as process:
        try:
            yield
        finally:
            process.kill()


def editor_killed(subject: Subject, rng: random.Random) -> None:
    """Kill a process that approves and excludes clips; every edit that it reported is there."""
    spawn = multiprocessing.get_context("spawn")
    receiving, sending = spawn.Pipe(duplex=False)
    editor = spawn.Process(target=edit, args=(subject.project.dataset, sending), daemon=True)
    editor.start()
    sending.close()
    try:
        if not receiving.poll(PATIENCE):
            raise Lost("no clip was edited")
        time.sleep(rng.uniform(0, 1))
    finally:
        editor.kill()
        editor.join()
    done = 0
    with contextlib.suppress(EOFError):
        while receiving.poll():
            done = int(receiving.recv())
    clips = subject.read_clips()
    reasons = [clips[name].reason for name in subject.clips]
    if reasons not in [[APPROVED if count % 2 else REASON] * len(clips) for count in (done, done + 1)]:
        raise Lost(f"after {done} edits the clips say {reasons}")
    if any(clips[name].text != clip.text for name, clip in subject.clips.items()):
        raise Lost("texts have changed")
    restore(subject.project.dataset, list(clips))
    approve(subject.project.dataset, APPROVED_CLIPS)
    subject.clips = subject.read_clips()


def edit(folder: Path, done: Connection) -> None:
    """Approve all clips, then exclude all, and so on; report each finished edit."""
    names = sorted(load_dataset(folder).clips)
    for count in range(1, 10_000):
        if count % 2:
            approve(folder, names)
        else:
            exclude(folder, names, REASON)
        done.send(count)


def state_damaged(subject: Subject, rng: random.Random) -> None:
    """Damage the resume state; the run resumes from its newest checkpoint, and says so."""
    _pause(subject, rng)
    newest = checkpoints.find(subject.training.folder, "newest").step
    _damage_state(subject, rng)
    _resume_with_a_warning(subject, newest)


def state_and_checkpoint_damaged(subject: Subject, rng: random.Random) -> None:
    """Damage the resume state and the newest checkpoint; the run resumes from the one before it, and says so."""
    _pause(subject, rng)
    while len(listed := checkpoints.list_checkpoints(subject.training.folder)) < 2:
        _pause(subject, rng)
    newest, before = listed[0], listed[1]
    _damage(newest.folder / checkpoints.MODEL, rng)
    _damage_state(subject, rng)
    _resume_with_a_warning(subject, before.step)


def checkpoint_damaged(subject: Subject, rng: random.Random) -> None:
    """Damage only the newest checkpoint; it never counts as intact, and the run resumes from its resume state."""
    _pause(subject, rng)
    newest = checkpoints.find(subject.training.folder, "newest")
    path = newest.folder / checkpoints.MODEL
    content = path.read_bytes()
    _damage(path, rng)
    with contextlib.suppress(DamagedError):
        checkpoints.read_state(newest.folder)
        raise Lost(f"{newest.folder} is damaged and counts as intact")
    subject.check_resume()
    subject.kill()
    if path.exists():  # it may have been deleted in favour of newer ones
        path.write_bytes(content)
    subject.check()


def event_torn(subject: Subject, rng: random.Random) -> None:
    """Leave half a line at the end of the events, as a power cut does; later events are read."""
    _pause(subject, rng)
    with subject.training.events.open("ab") as file:
        file.write(b'{"time": 1, "kind": "tra'[: rng.randrange(1, 24)])
    subject.check_resume()
    subject.kill_and_check()


def clock_jumped(subject: Subject, rng: random.Random) -> None:
    """Move every time of the run by a year, as after a clock that was set."""
    _pause(subject, rng)
    run, jump = subject.training, rng.choice((YEAR, -YEAR))
    state = run.read_state()
    run.write_state(dataclasses.replace(state, created=state.created + jump, heartbeat=state.heartbeat + jump))
    for path in run.folder.rglob("*"):
        os.utime(path, (time.time() + jump, time.time() + jump))
    subject.check_and_resume()
    state = run.read_state()
    run.write_state(dataclasses.replace(state, heartbeat=state.heartbeat - jump))
    if run.current_state().status not in runs.ACTIVE:  # before its next heartbeat
        raise Lost("an active run counts as lost once the clock jumps")
    subject.advance()
    subject.kill_and_check()


def deleted_while_running(subject: Subject, _rng: random.Random) -> None:
    """Delete, rename and copy the run and the project during training; all of it is refused."""
    run, project, output = subject.work(), subject.project, subject.project.root.parent
    actions: dict[str, Callable[[], object]] = {
        "deleting the run": lambda: runs.delete(run),
        "deleting the project": lambda: projects.delete(project, output),
        "renaming the project": lambda: projects.rename(project, "other", output),
        "copying the project": lambda: projects.duplicate(project, "copy", output),
    }
    for name, action in actions.items():
        with contextlib.suppress(RunBusyError):
            action()
            raise Lost(f"{name} was not refused during training")
    subject.advance()
    subject.kill_and_check()


def recording_deleted(subject: Subject, rng: random.Random) -> None:
    """Remove the audio of a clip during training, and resume without it; the features are there."""
    subject.work()
    path = subject.project.dataset / rng.choice(list(subject.clips.values())).audio
    content = path.read_bytes()
    path.unlink()
    try:
        subject.advance()
        subject.kill()
        subject.check()
        subject.check_resume()
    finally:
        path.write_bytes(content)


def run_folder_removed(subject: Subject, _rng: random.Random) -> None:
    """Delete the folder of a run by hand during training; its process ends, and the project is intact."""
    run = subject.work()
    shutil.rmtree(run.folder, ignore_errors=True)
    subject.expect_no_process()
    shutil.rmtree(run.folder, ignore_errors=True)  # what it wrote in its last moment
    subject.run = None
    subject.check_clips()
    subject.work()


def deleted_and_restored(subject: Subject, _rng: random.Random) -> None:
    """Delete an idle project and restore it; it is intact and its run resumes."""
    subject.work()
    subject.kill()
    deleted = projects.delete(subject.project, subject.project.root.parent)
    projects.restore(deleted.id, subject.project.root.parent)
    subject.check_and_resume()


def two_projects(subject: Subject, rng: random.Random) -> None:
    """Train in two projects at once and kill one run; the other continues, and both are intact."""
    other = Subject(subject.project.root.with_name(f"other-{rng.randrange(1 << 30)}"))
    with contextlib.closing(other):
        subject.work()
        other.work()
        subject.kill()
        other.advance()
        other.kill()
        for each in (subject, other):
            each.check()
            each.check_resume()
    shutil.rmtree(other.project.root)


def started_twice(subject: Subject, _rng: random.Random) -> None:
    """Start and resume an active training; no second one starts."""
    run = subject.work()
    pid = run.read_state().pid
    if runs.start("train", subject.config, subject.project) != run or runs.resume(run).read_state().pid != pid:
        raise Lost("a second training was started")
    subject.advance()


def _pause(subject: Subject, rng: random.Random) -> None:
    """Train for a while, then kill."""
    subject.work(rng.randint(2, 5))
    subject.kill_and_check()


def _damage_state(subject: Subject, rng: random.Random) -> None:
    folder = subject.training.folder / checkpoints.RESUME_FOLDER
    _damage(rng.choice(sorted(folder.glob("*.safetensors"))), rng)


def _damage(path: Path, rng: random.Random) -> None:
    """Flip a bit, truncate or empty a file."""
    content = bytearray(path.read_bytes())
    kind = rng.randrange(3)
    if kind == 0:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    else:
        del content[rng.randrange(len(content)) if kind == 1 else 0 :]
    path.write_bytes(content)


def _resume_with_a_warning(subject: Subject, step: int) -> None:
    warnings, saves = len(subject.events("warning")), len(subject.events("saved"))
    subject.check_resume(step)
    subject.wait_until(lambda: len(subject.events("saved")) > saves, "it does not save")
    messages = [str(event["message"]) for event in subject.events("warning")[warnings:]]
    if not any(f"checkpoint of update {step}." in message for message in messages):
        raise Lost(f"it did not say that it resumes from checkpoint {step}: {messages}")
    subject.kill_and_check()
