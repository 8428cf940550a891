"""Counters of the speech server in the text format of Prometheus."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

BUCKETS = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds until the first audio
PREFIX = "amharic_tts"


@dataclass
class Counters:
    """What was served since the start; changed in the thread of the server only."""

    responses: Counter[int] = field(default_factory=Counter)  # by HTTP status
    first_audio: Counter[float] = field(default_factory=Counter)  # by the buckets that it fits into
    first_audio_seconds: float = 0.0
    bytes_sent: int = 0

    def count(self, status: int) -> None:
        """Count the response to a request for speech."""
        self.responses[status] += 1

    def count_first_audio(self, seconds: float) -> None:
        self.first_audio_seconds += seconds
        self.first_audio.update([*(bucket for bucket in BUCKETS if seconds <= bucket), float("inf")])

    def render(self, gauges: Mapping[str, int]) -> str:
        lines = [f"# TYPE {PREFIX}_responses_total counter"]
        lines += [f'{PREFIX}_responses_total{{status="{status}"}} {n}' for status, n in sorted(self.responses.items())]
        lines += [f"# TYPE {PREFIX}_bytes_sent_total counter", f"{PREFIX}_bytes_sent_total {self.bytes_sent}"]
        name = f"{PREFIX}_first_audio_seconds"
        lines.append(f"# TYPE {name} histogram")
        for bucket in (*BUCKETS, float("inf")):
            label = "+Inf" if bucket == float("inf") else f"{bucket:g}"
            lines.append(f'{name}_bucket{{le="{label}"}} {self.first_audio[bucket]}')
        lines += [f"{name}_sum {self.first_audio_seconds:.6f}", f"{name}_count {self.first_audio[float('inf')]}"]
        for gauge, value in gauges.items():
            lines += [f"# TYPE {PREFIX}_{gauge} gauge", f"{PREFIX}_{gauge} {value}"]
        return "\n".join(lines) + "\n"
