"""What was measured of a voice, as tables of a page."""

from collections.abc import Mapping, Sequence
from typing import Any

JUDGED_SYSTEMS = ("espeak", "grid", "mel", "codes", "latents", "free", "chance")
GOALS = {  # what the voice has to reach, and how it is said
    "retrieved": ("nearest to its own rendering", 0.9),
    "as_long": ("within 30 % of its length", 0.9),
}


def checked(found: Mapping[str, Any]) -> str:
    """Write down what was measured of the finished voice, beside what is asked of it."""
    rows = [[GOALS[name][0], _share(found[name]), _share(GOALS[name][1])] for name in GOALS]
    rows += [[f"{name} of {found['sentences']} sentences", str(found[name]), "0"] for name in ("endless", "empty")]
    rows.append(["mel-cepstral distance of free speech (dB)", _heard(found["mcd_db"]), "reported"])
    rows.append(["seconds of work for one of speech", str(found["real_time_factor"]), "< 0.3"])
    return _table(["Unseen sentences", "Measured", "Asked"], rows)


def tuned(found: Mapping[str, Any]) -> str:
    """Write down what a fine-tuning did to the voice, beside what is asked of it."""
    rows = [
        ["nearest to its own rendering", _share(found["retrieved_before"]), _share(found["retrieved"]), "85%"],
        ["within 30 % of its length", "", _share(found["as_long"]), "reported"],
        ["sentences whose voice came nearer (speaker encoder)", "", _share(found["voice_nearer"]), "90%"],
        ["distance of the voice (1 - cosine)", _heard(found["voice_before"]), _heard(found["voice_after"]), "smaller"],
        ["sentences whose pitch came nearer", "", _share(found["pitch_nearer"]), "reported"],
        ["distance of the pitch (semitones)", _heard(found["pitch_before"]), _heard(found["pitch_after"]), "smaller"],
    ]
    return _table([f"{found['sentences']} sentences of the held-out speaker", "Before", "After", "Asked"], rows)


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


def _share(part: float) -> str:
    """Write a share such that nothing below all becomes all."""
    return f"{100 * part:.3g}%"


def _heard(distance: float | None) -> str:
    return "none heard" if distance is None else str(distance)


def _known(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
