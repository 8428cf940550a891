"""What the check of a dataset and the plan of memory found, as sentences with their cures."""

from utils.core.languages import canonical
from utils.system.doctor import Finding, Verdict
from utils.ui import views
from utils.ui.error_text import translate
from utils.ui.i18n import t
from utils.ui.tabs.training import presets
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
            t("training.evaluation_clips", language),
            "pass",
            t(
                "training.evaluation_summary",
                language,
                count=found["eval"],
                minutes=f"{found['eval_minutes']:.1f}",
            ),
        ),
        _counted(
            t("training.long_clips", language),
            found["too_long"],
            t("training.long_clips_cure", language),
            language,
        ),
        *_text(found, language),
        *_lines(found, language),
        *_spoken(found, language, chosen),
    ]


def _size(found: Answer, language: str) -> Finding:
    few = found["hours"] < FEW_HOURS
    told = t(
        "training.clips_summary",
        language,
        count=found["train"],
        hours=f"{found['hours']:.2f}",
        longest=f"{found['longest']:.1f}",
    )
    cure = t("training.little_data", language) if few else ""
    return Finding(t("training.training_clips", language), "warn" if few else "pass", told, cure)


def _text(found: Answer, language: str) -> list[Finding]:
    title, tokens = t("training.unknown_symbols", language), found["tokens"]
    if tokens is None:
        cure = t("training.vocabulary_missing_cure", language)
        return [Finding(title, "warn", t("training.vocabulary_missing", language, name=found["unread"]), cure)]
    lacking, cure = tokens["lacking"], ""
    verdict: Verdict = "pass"
    told = t("training.no_unknown_symbols", language, count=tokens["most"])
    if lacking["count"]:
        verdict = "fail"
        symbols = " ".join(tokens["unknown"])
        told = t("training.symbols_in_clips", language, symbols=symbols, count=lacking["count"])
        told += f": {', '.join(lacking['named'])}"
        cure = t("training.unknown_symbols_cure", language)
    long = _counted(
        t("training.long_texts", language),
        tokens["long"],
        t("training.long_texts_cure", language),
        language,
    )
    return [Finding(title, verdict, told, cure), long]


def _lines(found: Answer, language: str) -> list[Finding]:
    if not found["fault_count"]:
        return []
    told = f"{found['fault_count']}: {' '.join(found['faults'])}"
    cure = t("training.invalid_lines_cure", language)
    return [Finding(t("training.invalid_lines", language), "warn", told, cure)]


def _spoken(found: Answer, language: str, chosen: str) -> list[Finding]:
    if canonical(found["language"]) == canonical(chosen):
        return []
    told = t("training.language_mismatch", language, there=found["language"], here=chosen)
    return [Finding(t("training.language", language), "warn", told, t("training.language_mismatch_cure", language))]


def _counted(title: str, clips: Answer, cure: str, language: str) -> Finding:
    if not clips["count"]:
        return Finding(title, "pass", t("common.none", language))
    return Finding(title, "warn", f"{clips['count']}: {', '.join(clips['named'])}", cure)


def plan_tables(found: Answer, language: str) -> str:
    """Show the plan of memory: the verdict, the parts, and how the tiers would do on this device."""
    room, peak = found["available"], found["peak"]
    fits = peak <= room
    sentence = t(
        "training.memory_needed",
        language,
        batch=found["batch"],
        peak=_gib(peak),
        name=found["device"],
        room=_gib(room),
    )
    verdict = t("training.it_fits", language) if fits else t("training.it_does_not_fit", language)
    lead = (
        f"<p><b class='{'pass' if fits else 'fail'}'>{verdict}</b></p>{note(sentence)}{note(_advice(found, language))}"
    )
    said = (
        (translate(name, language), _gib(size), translate(meaning, language)) for name, size, meaning in found["parts"]
    )
    titles = [t(title, language) for title in ("training.part", "training.size", "training.meaning")]
    parts = table(titles, [[cell(text) for text in row] for row in said])
    tiers = table(
        [
            t(title, language)
            for title in ("training.preset", "training.batch", "training.peak", "training.on_this_device")
        ],
        [_tier(row, language) for row in found["tiers"]],
    )
    return lead + parts + tiers


def _advice(found: Answer, language: str) -> str:
    tuned = found["tuned"]
    if tuned is None:
        return str(found["advice"])
    return t(
        "training.memory_advice",
        language,
        batch=tuned["batch_size"],
        steps=tuned["grad_acumm"],
        peak=_gib(found["tuned_peak"]),
    )


def _tier(row: list[object], language: str) -> tuple[str, ...]:
    name, batch, steps, peak, fits = row
    verdict = t("training.fits", language) if fits else t("training.does_not_fit", language)
    mark = f"{'✓' if fits else '✗'} {verdict}"
    title = presets.title(str(name), language)
    return (
        cell(title),
        cell(f"{batch} × {steps}"),
        cell(_gib(peak)),
        cell(mark, classes=f"mark {'pass' if fits else 'fail'}"),
    )


def _gib(size: object) -> str:
    return f"{float(str(size)) / GIB:.2f} GiB"
