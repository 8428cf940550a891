"""The figures of all stages as a part of a page, made from what the stages left and from nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.tiny_voice.stages import figures, format_duration
from tools.tiny_voice.training_loop import CURVE
from utils.core.storage import read_json

ROWS = 9  # of a curve
JUDGED_SYSTEMS = ("espeak", "mel", "codes", "latents", "free", "chance")
GOALS = {  # what the voice has to reach, and how it is said
    "retrieved": ("nearest to its own rendering", 0.9),
    "as_long": ("within 30 % of its length", 0.9),
}


def report_of(root: Path) -> str:
    """Write down the figures of every stage that is finished."""
    names = "corpus audio sample dvae codes gpt speaker_encoder vocoder voice checks".split()
    known = {name: found for name in names if (found := figures(root, name))}
    if not known:
        return "No stage is finished yet.\n"
    parts = [_table(["Stage", "Took", "Figures"], [_stage(name, found) for name, found in known.items()])]
    for name, folder in (("DVAE", "dvae"), ("Voices", "speaker_encoder"), ("Vocoder", "vocoder")):
        if folder in known:
            parts.append(f"{name} over its training:\n\n{_curve(read_json(root / folder / CURVE))}")
    for lesson in [name for name in ("phrases", "sentences") if name in known.get("gpt", {})]:
        unheard = read_json(root / "gpt" / lesson / CURVE)["unheard"]
        parts.append(f"GPT, lesson of {lesson}, on clips that it never learnt from:\n\n{_curve(unheard)}")
    if "checks" in known:
        parts.append(checked(known["checks"]))
    return "\n\n".join(parts) + "\n"


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


def _stage(name: str, found: Mapping[str, Any]) -> list[str]:
    told = ", ".join(f"{key} {_number(value)}" for key, value in _flat(found).items() if key != "seconds")
    return [name, format_duration(found["seconds"]), told]


def _flat(found: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Join the names of figures within figures; the sizes of files and lists of words are told elsewhere."""
    flat: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, Mapping) and name != "bytes":
            flat |= _flat(value, f"{before}{name} ")
        elif isinstance(value, int | float):
            flat[f"{before}{name}".replace("_", " ")] = value
    return flat


def _share(part: float) -> str:
    """Write a share such that nothing below all becomes all."""
    return f"{100 * part:.3g}%"


def _heard(distance: float | None) -> str:
    return "none heard" if distance is None else str(distance)


def _known(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _curve(points: Sequence[Mapping[str, float]]) -> str:
    """Write a curve as a table of a few of its points, the last among them."""
    names = list(points[-1])
    whole = [point for point in points if set(names) <= set(point)]
    places = sorted({round(row * (len(whole) - 1) / (ROWS - 1)) for row in range(ROWS)})
    rows = [[_number(whole[place][name]) for name in names] for place in places]
    return _table([name.replace("_", " ") for name in names], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"
