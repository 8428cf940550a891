"""What the check of a dataset and the plan of memory found, as sentences with their cures."""

from utils.core.languages import canonical
from utils.system.doctor import Finding, Verdict
from utils.ui import views
from utils.ui.i18n import say
from utils.ui.tabs.training.presets import BY_NAME
from utils.ui.tabs.training.queries import Answer
from utils.ui.views import cell, note, table

FEW_HOURS = 2.0  # below it, configs/small_dataset.yaml is the preset
GIB = 2**30


def check_table(found: Answer, language: str, *, chosen: str) -> str:
    """Show what the dataset holds and what is wrong with it, the worst first."""
    return views.findings(check_findings(found, language, chosen=chosen), language)


def check_findings(found: Answer, language: str, *, chosen: str) -> list[Finding]:
    """Judge a dataset.

    Args:
        found: What answering.check returned.
        language: Of the page.
        chosen: The language that the form says is spoken.
    """
    return [
        _size(found, language),
        Finding(
            say("Evaluation clips", language),
            "pass",
            say(
                "{count} clips, {minutes} minutes",
                language,
                count=found["eval"],
                minutes=f"{found['eval_minutes']:.1f}",
            ),
        ),
        _counted(
            say("Clips that are too long", language),
            found["too_long"],
            say("They are set aside; raise the longest clip, or cut them again.", language),
            language,
        ),
        *_text(found, language),
        *_lines(found, language),
        *_spoken(found, language, chosen),
    ]


def _size(found: Answer, language: str) -> Finding:
    few = found["hours"] < FEW_HOURS
    told = say(
        "{count} clips, {hours} hours, the longest lasts {longest} s",
        language,
        count=found["train"],
        hours=f"{found['hours']:.2f}",
        longest=f"{found['longest']:.1f}",
    )
    cure = say("Little data: choose the preset for under 2 hours, or record more.", language) if few else ""
    return Finding(say("Training clips", language), "warn" if few else "pass", told, cure)


def _text(found: Answer, language: str) -> list[Finding]:
    title, tokens = say("Symbols without a token ([UNK])", language), found["tokens"]
    if tokens is None:
        cure = say("It comes with the model at the first start; check again after that.", language)
        return [
            Finding(title, "warn", say("Not checked: there is no {name} yet.", language, name=found["unread"]), cure)
        ]
    lacking, cure = tokens["lacking"], ""
    verdict: Verdict = "pass"
    told = say("none; the longest text has {count} tokens", language, count=tokens["most"])
    if lacking["count"]:
        verdict = "fail"
        symbols = " ".join(tokens["unknown"])
        told = say("{symbols} in {count} clips", language, symbols=symbols, count=lacking["count"])
        told += f": {', '.join(lacking['named'])}"
        cure = say("Write these signs in words, or switch Amharic G2P on.", language)
    long = _counted(
        say("Texts that are too long", language),
        tokens["long"],
        say("They are set aside; raise the longest text, or cut the clips again.", language),
        language,
    )
    return [Finding(title, verdict, told, cure), long]


def _lines(found: Answer, language: str) -> list[Finding]:
    if not found["fault_count"]:
        return []
    told = f"{found['fault_count']}: {' '.join(found['faults'])}"
    cure = say("These lines are left out; correct the lists or make the dataset again.", language)
    return [Finding(say("Lines that cannot be used", language), "warn", told, cure)]


def _spoken(found: Answer, language: str, chosen: str) -> list[Finding]:
    if canonical(found["language"]) == canonical(chosen):
        return []
    told = say("The dataset says {there}, the form says {here}.", language, there=found["language"], here=chosen)
    return [Finding(say("Language", language), "warn", told, say("Choose the language that is spoken.", language))]


def _counted(title: str, clips: Answer, cure: str, language: str) -> Finding:
    if not clips["count"]:
        return Finding(title, "pass", say("none", language))
    return Finding(title, "warn", f"{clips['count']}: {', '.join(clips['named'])}", cure)


def plan_tables(found: Answer, language: str) -> str:
    """Show the plan of memory: the verdict, the parts, and how the tiers would do on this device."""
    room, peak = found["available"], found["peak"]
    fits = peak <= room
    sentence = say(
        "Calculated, not measured: {batch} need {peak} at the peak; {name} has {room}.",
        language,
        batch=found["batch"],
        peak=_gib(peak),
        name=found["device"],
        room=_gib(room),
    )
    verdict = say("It fits.", language) if fits else say("It does not fit.", language)
    lead = (
        f"<p><b class='{'pass' if fits else 'fail'}'>{verdict}</b></p>{note(sentence)}{note(_advice(found, language))}"
    )
    said = ((say(name, language), _gib(size), say(meaning, language)) for name, size, meaning in found["parts"])
    titles = [say(title, language) for title in ("Part", "Size", "What it is")]
    parts = table(titles, [[cell(text) for text in row] for row in said])
    tiers = table(
        [say(title, language) for title in ("Preset", "Batch", "Peak", "On this device")],
        [_tier(row, language) for row in found["tiers"]],
    )
    return lead + parts + tiers


def _advice(found: Answer, language: str) -> str:
    tuned = found["tuned"]
    if tuned is None:
        return str(found["advice"])
    return say(
        "The same effective batch fits as batch size {batch} with gradient accumulation {steps}: peak {peak}.",
        language,
        batch=tuned["batch_size"],
        steps=tuned["grad_acumm"],
        peak=_gib(found["tuned_peak"]),
    )


def _tier(row: list[object], language: str) -> tuple[str, ...]:
    name, batch, steps, peak, fits = row
    verdict = say("fits", language) if fits else say("does not fit", language)
    mark = f"{'✓' if fits else '✗'} {verdict}"
    title = say(BY_NAME[str(name)].title, language)
    return (
        cell(title),
        cell(f"{batch} × {steps}"),
        cell(_gib(peak)),
        cell(mark, classes=f"mark {'pass' if fits else 'fail'}"),
    )


def _gib(size: object) -> str:
    return f"{float(str(size)) / GIB:.2f} GiB"
