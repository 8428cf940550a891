"""What is heard of one speaking: how far it is, its newest sound for a player, and the take that it becomes."""

import base64
import json
import time
from collections import deque
from dataclasses import dataclass, field, replace

from utils.config import SpeechConfig
from utils.media.audio import Samples
from utils.media.encoding import to_pcm16
from utils.ui.i18n import t
from utils.ui.tabs.inference import render, speech_tasks
from utils.ui.tabs.inference.speech_tasks import Begun, Done, Dubbed, News, Sounding, Stage
from utils.workspace.takes import Said, Take

WINDOW = 6  # stretches of sound sent again with each new one: the browser may skip an update, and plays none twice


@dataclass
class Listener:
    """Follows one speaking, and makes a take of what was heard.

    Attributes:
        kind: What the take will be.
        text: What is to be said.
        config: How.
        begun: What was announced; None before the first sentence is begun.
        told: Sentences that are done.
        dubbed: Subtitles that are done.
        speaking_since: When speaking itself began.
        stage: What is being done now.
        recent: The newest stretches of sound, for a player.
        count: Stretches so far.
        done: Sentences so far, of subtitles too.
        key: Tells this speaking from others in the browser.
    """

    kind: str
    text: str
    config: SpeechConfig
    begun: Begun | None = None
    told: list[Said] = field(default_factory=list)
    dubbed: Dubbed | None = None
    speaking_since: float = 0.0
    stage: str = ""
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=WINDOW))
    count: int = 0
    done: int = 0
    key: str = field(default_factory=lambda: str(time.time_ns()))

    def hear(self, item: News | None) -> None:
        """Take one piece of news."""
        if isinstance(item, Stage):
            self.stage = item.name
        elif isinstance(item, Begun):
            self.begun, self.speaking_since, self.stage = item, time.monotonic(), ""
        elif isinstance(item, Said):
            self.told.append(item)
            self.done = len(self.told)
        elif isinstance(item, Done):
            self.done = item.step
        elif isinstance(item, Dubbed):
            self.dubbed = item
        elif isinstance(item, Sounding):
            self.recent.append(base64.b64encode(to_pcm16(item.samples)).decode())
            self.count += 1

    def chunk(self) -> str:
        """Return the newest stretches of sound as the player reads them."""
        if not self.count:
            return ""
        return json.dumps({"key": self.key, "first": self.count - len(self.recent), "parts": list(self.recent)})

    def progress(self, seconds: float, language: str) -> str:
        """Say how far it is."""
        if self.begun is None or self.stage:
            stage = t(self.stage or "inference.getting_ready", language)
            return render.working(f"{stage} · {seconds:.0f} s")
        values = {"step": self.done, "total": self.begun.total}
        sentence = t("inference.sentences_progress", language, **values)
        return render.working(f"{sentence} · {seconds:.0f} s", self.done, self.begun.total)

    def take(self) -> tuple[Take, Samples] | None:
        """Return what became of it; None when no sentence was finished."""
        took = time.monotonic() - self.speaking_since
        if self.begun and self.dubbed:
            made, samples = speech_tasks.take_of(self.begun, [], self.kind, self.text, self.config)
            notes = (*made.notes, *self.dubbed.notes)
            pieces = self.dubbed.pieces
            return replace(made, pieces=pieces, notes=notes, unfinished=False, took=took), self.dubbed.samples
        if self.begun is None or not self.told:
            return None
        made, samples = speech_tasks.take_of(self.begun, self.told, self.kind, self.text, self.config)
        return (replace(made, took=took), samples) if samples.size else None
