"""What a run has told so far: its events, taken in one by one, and the curves that they make."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from utils.core.events import Event, as_integer, as_number

MOST_POINTS = 1500  # of a curve; more than a screen has pixels
TRAIN = {
    "loss_audio": "loss_audio",
    "loss_text": "loss_text",
    "learning_rate": "rate",
    "samples_per_second": "speed",
    "memory_gb": "memory",
}
EVALUATION = {
    "loss": "eval",
    "loss_audio": "eval_audio",
    "loss_text": "eval_text",
    "loss_without_ema": "eval_raw",
}


@dataclass
class Curve:
    """Points by step; where they get too many, neighbours become their mean."""

    points: list[tuple[float, float]] = field(default_factory=list)
    per_point: int = 1
    waiting: list[tuple[float, float]] = field(default_factory=list)

    def add(self, step: float, value: float) -> None:
        """Add a point."""
        self.waiting.append((step, value))
        if len(self.waiting) >= self.per_point:
            self.points.append(_mean(self.waiting))
            self.waiting.clear()
        if len(self.points) >= 2 * MOST_POINTS:
            pairs = zip(self.points[::2], self.points[1::2], strict=False)
            self.points = [_mean(list(pair)) for pair in pairs]
            self.per_point *= 2

    def cut(self, last: float) -> None:
        """Forget what came after a step."""
        for points in (self.points, self.waiting):
            while points and points[-1][0] > last:
                points.pop()


def _mean(points: list[tuple[float, float]]) -> tuple[float, float]:
    return (sum(step for step, _ in points) / len(points), sum(value for _, value in points) / len(points))


@dataclass(frozen=True)
class Sample:
    """A sentence that was spoken at a step."""

    step: int
    text: str
    file: str


@dataclass
class Story:
    """What a run has told.

    Attributes:
        curves: By name; see TRAIN and EVALUATION.
        switches: What each switch changed, with details.
        on: What is really on, read from the live model.
        memory: The plan of memory, as a sentence.
        warnings: The newest ones.
        problems: How many clips or lines had a fault.
        aside: How many clips were set aside.
        used: Clips of each list.
        samples: Sentences that were spoken.
        step: Updates done.
        total: Updates of the run.
        seconds_left: How long it lasts; None when nobody knows.
        phase: What it prepares: part, done, total; None while it trains.
        latest: The newest figures of an update.
        best: Best loss of an evaluation and its step.
        ready: The folder of the finished model, once it is made.
        read: Share of the log that was read.
    """

    curves: dict[str, Curve] = field(default_factory=dict)
    switches: dict[str, tuple[int, str]] = field(default_factory=dict)
    on: dict[str, str] = field(default_factory=dict)
    memory: str = ""
    warnings: deque[str] = field(default_factory=lambda: deque(maxlen=20))
    problems: deque[str] = field(default_factory=lambda: deque(maxlen=20))
    problem_count: int = 0
    aside: int = 0
    used: dict[str, int] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    step: int = 0
    total: int = 0
    seconds_left: float | None = None
    phase: tuple[str, int, int] | None = None
    latest: Event = field(default_factory=dict)
    best: tuple[float, int] | None = None
    ready: str = ""
    read: float = 1.0

    def points(self, name: str) -> list[tuple[float, float]]:
        """Return the points of a curve; none when there is no such."""
        curve = self.curves.get(name)
        return [*curve.points, *curve.waiting[-1:]] if curve else []

    def snapshot(self) -> "Story":
        """Return a copy that stays as it is while more is read."""
        curves = {
            name: Curve([*curve.points], curve.per_point, [*curve.waiting]) for name, curve in self.curves.items()
        }
        return replace(
            self,
            curves=curves,
            switches=dict(self.switches),
            used=dict(self.used),
            samples=[*self.samples],
            warnings=self.warnings.copy(),
            problems=self.problems.copy(),
        )

    def take(self, event: Event) -> None:
        """Hear one event; one that is damaged is passed over."""
        hear = HEARD.get(str(event.get("kind")))
        if hear is not None:
            hear(self, event)

    def _train(self, event: Event) -> None:
        step = as_integer(event.get("step"))
        if step is None:
            return
        if step <= self.step:
            self._cut(step - 1)  # it went back to what was saved
        self.step, self.latest, self.phase = step, event, None
        self.seconds_left = as_number(event.get("seconds_left"))
        self._add(TRAIN, step, event)

    def _evaluation(self, event: Event) -> None:
        step = as_integer(event.get("step"))
        if step is None:
            return
        for name in EVALUATION.values():
            if name in self.curves:
                self.curves[name].cut(step - 1)
        self._add(EVALUATION, step, event)
        loss = as_number(event.get("loss"))
        if step and loss is not None and (self.best is None or loss < self.best[0]):
            self.best = loss, step

    def _add(self, names: dict[str, str], step: int, event: Event) -> None:
        for name, curve in names.items():
            value = as_number(event.get(name))
            if value is not None:
                self.curves.setdefault(curve, Curve()).add(step, value)

    def _resumed(self, event: Event) -> None:
        if (step := as_integer(event.get("step"))) is not None:
            self._cut(step)

    def _cut(self, last: int) -> None:
        """Forget what came after a step: the run goes on from there."""
        self.step = last
        for curve in self.curves.values():
            curve.cut(last)
        if self.best and self.best[1] > last:
            points = [(value, round(step)) for step, value in self.points("eval") if step > 0]
            self.best = min(points, default=None)

    def _progress(self, event: Event) -> None:
        done, total = as_integer(event.get("step")), as_integer(event.get("total"))
        if done is None or not total:
            return
        if part := event.get("part"):
            self.phase = str(part), done, total
        else:
            self.total, self.phase = total, None

    def _optimization(self, event: Event) -> None:
        changed = as_integer(event.get("changed"))
        if changed is not None:
            self.switches[str(event.get("name"))] = changed, str(event.get("detail") or "")

    def _what_is_on(self, event: Event) -> None:
        parts = event.get("parts")
        if isinstance(parts, dict):
            self.on = {str(name): str(state) for name, state in parts.items()}

    def _memory_plan(self, event: Event) -> None:
        self.memory = str(event.get("message") or "")

    def _warning(self, event: Event) -> None:
        self.warnings.append(str(event.get("message") or ""))

    def _problem(self, event: Event) -> None:
        self.problem_count += 1
        self.problems.append(str(event.get("message") or ""))

    def _clips(self, event: Event) -> None:
        used, aside = as_integer(event.get("used")), as_integer(event.get("aside"))
        split = str(event.get("split"))
        if used is not None:
            self.used[split] = used
        if split == "train":
            self.aside = 0  # a resumed run tells it again
        self.aside += aside or 0

    def _sample(self, event: Event) -> None:
        step = as_integer(event.get("step"))
        if step is not None:
            sample = Sample(step, str(event.get("text") or ""), str(event.get("file") or ""))
            self.samples = [one for one in self.samples if one.file != sample.file] + [sample]

    def _started(self, _event: Event) -> None:
        self.problem_count, self.phase, self.latest = 0, None, {}
        self.problems.clear()

    def _ready(self, event: Event) -> None:
        self.ready = str(event.get("folder") or "")

    def _ended(self, _event: Event) -> None:
        self.phase, self.seconds_left = None, None


HEARD: dict[str, Callable[[Story, Event], None]] = {
    name.removeprefix("_"): getattr(Story, name)
    for name in (
        "_train",
        "_evaluation",
        "_resumed",
        "_progress",
        "_optimization",
        "_what_is_on",
        "_memory_plan",
        "_warning",
        "_problem",
        "_clips",
        "_sample",
        "_started",
        "_ready",
        "_ended",
    )
}
