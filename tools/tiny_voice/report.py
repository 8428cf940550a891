"""What was measured of a voice, as tables of a page."""

from collections.abc import Mapping, Sequence
from typing import Any

JUDGED_SYSTEMS = ("espeak", "grid", "mel", "codes", "latents", "free", "chance")


def judged(found: Mapping[str, Any]) -> str:
    """Write down what the judges measured of each system, and of the voice alone."""
    systems = [name for name in JUDGED_SYSTEMS if name in found]
    rows = [
        [name.replace("_", " "), *(_known(found[system].get(name)) for system in systems)] for name in found["free"]
    ]
    for name, figure in (("longer consonant (ms)", "longer_ms"), ("share longer by 40 ms", "lengthened")):
        rows.append([name, *(_known(found["gemination"].get(system, {}).get(figure)) for system in systems)])
    retrieval = found["retrieval"]
    of_free = {"free": retrieval["by_sound"], "chance": retrieval["chance"]}
    rows.append(["retrieved among 41 of its length", *(_known(of_free.get(system)) for system in systems)])
    rows.append(["retrieved by length alone", *(_known({"free": retrieval["by_length"]}.get(one)) for one in systems)])
    rows.append(["real-time factor", *(_known({"free": found["real_time_factor"]}.get(one)) for one in systems)])
    return _table([f"{found['sentences']} unseen sentences", *systems], rows)


def _known(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
