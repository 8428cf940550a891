"""How well texts are checked: `python -m benchmarks.alignment errors|human|cues|long --work FOLDER`.

Every scenario writes files as a user has them and runs the build of a dataset. What is right is known to the sample:
speech of voices and sentences that the recogniser never learnt, with planted errors; and clips of a human reader, such
as LJ Speech, in a folder that you give.
"""

import argparse
import csv
import json
import resource
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import soundfile

from benchmarks.alignment_data import PlantedClip, project, read_aloud
from utils.config import DatasetConfig
from utils.core import wording
from utils.core.facts import Fact
from utils.dataset import text_check
from utils.dataset.pipeline import content_hash
from utils.dataset.prepare import prepare
from utils.dataset.sources import find_recordings
from utils.dataset.store import Dataset
from utils.dataset.text_check import find_words, saved_check
from utils.media import audio
from utils.media.audio import Samples
from utils.recognition.aligner import WORST

if TYPE_CHECKING:
    from utils.dataset.clip import Clip

RATE = 16_000
PADDING = DatasetConfig().padding_seconds
SILENCE = -40.0  # dB against loud speech


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scenario", choices=sorted(SCENARIOS))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--clips", type=int, default=240)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--human", type=Path, help="folder of a reader: texts.csv (file|text) and recordings")
    parser.add_argument("--people", type=Path, help="errors: folders of readers, instead of speech from espeak-ng")
    parser.add_argument("--fold", type=int, default=0, help="errors: of the readers (tools.phone_recogniser)")
    parser.add_argument("--recogniser", type=Path, help="instead of the embedded one")
    parser.add_argument("--wrong", type=int, default=0, help="human: clips with the text of another one")
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    if options.scenario == "human" and not options.human:
        parser.error("--human is needed")
    if options.recogniser:
        text_check.EMBEDDED = options.recogniser  # type: ignore[attr-defined]
    SCENARIOS[options.scenario](options)
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"processor {sum(one.ru_utime for one in usage):.0f} s, peak memory {usage[0].ru_maxrss / 1e6:.2f} GB")


def errors(options: argparse.Namespace) -> None:
    """Clips with their texts in a list: swapped texts, missing words, words too many."""
    clips = (
        read_aloud(options.people, options.clips, options.seed, options.fold)
        if options.people
        else project(options.clips, seed=options.seed)
    )
    by_audio = {f"{number:04}.wav": clip for number, clip in enumerate(clips)}
    for name, planted in by_audio.items():
        soundfile.write(options.work / name, planted.samples, RATE)
    rows = [f"{name}|{planted.text}|{planted.voice}" for name, planted in by_audio.items()]
    (options.work / "metadata.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    contents = run(options.work, "am", min_snr_db=DatasetConfig().min_snr_db if options.people else -20)
    groups: defaultdict[str, list[tuple[Clip, PlantedClip]]] = defaultdict(list)
    for clip in contents.clips.values():
        planted = by_audio[Path(clip.source).name]
        if clip.text:
            groups[planted.error or "right"].append((clip, planted))
    for error, pairs in sorted(groups.items()):
        excluded = Counter(clip.reason for clip, _ in pairs if clip.status == "excluded")
        print(f"{error}: {len(pairs)} clips, excluded {sum(excluded.values()) / len(pairs):.1%} {dict(excluded)}")
    for kind in sorted({clip.kind for clip in clips}):
        right = [clip for clip, planted in groups["right"] if planted.kind == kind]
        print(f"  right, {kind}: {sum(clip.status == 'excluded' for clip in right)} of {len(right)} excluded")


def human(options: argparse.Namespace) -> tuple[float, float, int]:
    """A human reader, in English: one recording with its transcript and no times; or a list with swapped texts.

    Of a list, return the shares of swapped and of right texts that are excluded.
    """
    with (options.human / "texts.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row["file"], row["text"]) for row in csv.DictReader(file, delimiter="|", quoting=csv.QUOTE_NONE)]
    sounds = [audio.load(options.human / f"{name.removesuffix('.wav')}.wav", RATE) for name, _ in rows]
    texts = [text for _, text in rows]
    if options.wrong:
        swapped = swap(texts, options.wrong, options.seed)
        for number, sound in enumerate(sounds):
            soundfile.write(options.work / f"{number:02}.wav", sound, RATE)
        lines = [f"{number:02}.wav|{swapped.get(number, text)}|lj" for number, text in enumerate(texts)]
        (options.work / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        clips = [clip for clip in run(options.work, "en").clips.values() if clip.text]
        wrong = {clip.id for clip in clips if int(Path(clip.source).stem) in swapped}
        found = sum(clip.status == "excluded" for clip in clips if clip.id in wrong)
        lost = [clip for clip in clips if clip.id not in wrong and clip.status == "excluded"]
        print(f"swapped: {found} of {len(wrong)} excluded; right: {len(lost)} of {len(clips) - len(wrong)} excluded")
        print(*(f"  {clip.reason}: {clip.note} | {clip.text}" for clip in lost), sep="\n")
        return found / len(wrong), len(lost) / (len(clips) - len(wrong)), 0
    return joined(options, sounds, texts, "en")


def joined(
    options: argparse.Namespace, sounds: Sequence[Samples], texts: Sequence[str], language: str
) -> tuple[float, float, int]:
    """Join clips to one recording with its transcript; compare the text of each clip with what is said in it.

    Return the share that is kept, the share of borders within 0.15 s, and how many borders are in speech.
    """
    pauses = np.random.default_rng(options.seed).uniform(0.25, 0.7, len(sounds))
    parts, truth, at = [], [], 0.0
    for sound, pause in zip(sounds, pauses, strict=True):
        parts += [sound, np.zeros(round(pause * RATE), np.float32)]
        truth.append((at, at + sound.size / RATE))
        at += (parts[-2].size + parts[-1].size) / RATE
    noise = np.random.default_rng(1).standard_normal(round(at * RATE) + len(parts)) * 3e-4
    whole = np.concatenate(parts)
    soundfile.write(options.work / "talk.wav", whole + noise[: whole.size], RATE)
    (options.work / "talk.txt").write_text(" ".join(texts), encoding="utf-8")
    contents = run(options.work, language)
    share, within = compare(contents, texts, truth, sum(sound.size for sound in sounds) / RATE)
    return share, within, cuts(contents, options.work, language)


def compare(
    contents: Dataset, texts: Sequence[str], truth: Sequence[tuple[float, float]], spoken: float
) -> tuple[float, float]:
    """Print what was kept, and whether the words of each clip are those of the sentences that are said there.

    A word at a place in a sentence is said about there in its span; a clip is right when its first and last word are
    within it and their neighbours are not.
    """
    kept = contents.kept
    print(f"{len(kept)} clips kept, {sum(clip.span.seconds for clip in kept) / spoken:.1%} of {spoken:.0f} s of speech")
    for reason, count in Counter(clip.reason for clip in contents.excluded).items():
        print(f"  excluded, {reason}: {count}")
    warnings = [str(warning) for source in contents.files.values() for warning in source.warnings]
    print(f"  warnings: {[warning[:150] for warning in warnings[:5]]}")
    offsets = []
    whole = " ".join(texts).split()
    starts = np.cumsum([0, *(len(text.split()) for text in texts)])
    borders = {int(at): span for at, span in zip(starts, truth, strict=False)}  # first words of sentences
    ends = {int(at): span[1] for at, span in zip(starts[1:], truth, strict=True)}
    at = 0
    for clip in sorted(kept, key=lambda clip: clip.span.start):
        words = clip.text.split()
        while at < len(whole) and whole[at : at + len(words)] != words:
            at += 1
        if at == len(whole):
            print(f"  not in the text in order: {clip.text}")
            at = 0
            continue
        if at in borders:
            offsets.append(clip.span.start + PADDING - borders[at][0])
        if at + len(words) in ends:
            offsets.append(clip.span.end - PADDING - ends[at + len(words)])
        at += len(words)
    values = np.abs(offsets) if offsets else np.zeros(1)
    within = float(np.mean(values <= 0.15))
    print(f"  {len(offsets)} borders of sentences: median {np.median(values):.3f} s off, {within:.0%} within 0.15 s")
    return sum(clip.span.seconds for clip in kept) / spoken, within


def cuts(contents: Dataset, folder: Path, language: str) -> int:
    """Return how many borders of kept clips cut a word, by the level there and an alignment of the whole recording."""
    settings = DatasetConfig(language=language)
    checked = saved_check(folder / "project" / "dataset", language)
    (recording,) = find_recordings([folder / "talk.wav"], language=language).recordings
    assert checked is not None
    rows = checked.rows(recording.path, content_hash(recording.path))
    groups, _ = find_words(rows, WORST, recording, checked.units, audio.duration(recording.path), settings)
    words = [word for group in groups for word in group if word.units]
    borders = sorted({edge for clip in contents.kept for edge in (clip.span.start, clip.span.end)})
    sound = audio.load(recording.path, RATE)
    loud = level(sound[np.abs(sound) > np.abs(sound).max() / 10])
    levels = {edge: level(sound[round((edge - 0.02) * RATE) : round((edge + 0.02) * RATE)]) - loud for edge in borders}
    inside = [(edge, word) for edge in borders for word in words if word.span.start < edge < word.span.end]
    for edge, word in inside:
        print(f"  border at {edge:.2f} s within {word.text!r} {word.span}, where it is {levels[edge]:.0f} dB")
    spoken = [edge for edge, level_there in levels.items() if level_there > SILENCE]
    print(f"  {len(borders)} borders, {len(inside)} within the alignment of a word, {len(spoken)} in speech")
    print(f"  the loudest 40 ms at a border: {max(levels.values()):.0f} dB against loud speech")
    return len(spoken)


def level(sound: Samples) -> float:
    """Return the level of a sound in dB."""
    return float(10 * np.log10(np.mean(np.square(sound, dtype=np.float64)) + 1e-12)) if sound.size else -120.0


def swap(texts: Sequence[str], count: int, seed: int) -> dict[int, str]:
    """Return the texts of these clips, each that of another clip of about the same length."""
    lengths = np.array([len(text) for text in texts])
    chosen = np.random.default_rng(seed).permutation(len(texts))[:count]
    return {
        int(number): next(
            texts[other] for other in np.argsort(np.abs(lengths - lengths[number])) if texts[other] != texts[number]
        )
        for number in chosen
    }


def speech(count: int, seed: int) -> tuple[list[Samples], list[str]]:
    """Return clean and noisy sentences of one voice without planted errors."""
    clips = project(count * 6, seed=seed, swapped=0, missing=0, extra=0)[::6]
    return [without_silence(clip.samples) for clip in clips], [clip.said for clip in clips]


def without_silence(sound: Samples) -> Samples:
    """Cut off what is quieter than a twentieth of the peak at both ends."""
    loud = np.flatnonzero(np.abs(sound) > 0.05 * np.abs(sound).max())
    return sound[max(0, loud[0] - 800) : loud[-1] + 800]


def cues(options: argparse.Namespace) -> None:
    """One recording with subtitles without any pause between them, whose borders are up to 0.4 s off."""
    sounds, texts = speech(options.clips // 6, options.seed)
    random = np.random.default_rng(options.seed)
    ends = np.cumsum([sound.size / RATE for sound in sounds])
    soundfile.write(options.work / "talk.wav", np.concatenate(sounds), RATE)
    borders = [0.0, *(ends[:-1] + random.uniform(-0.4, 0.4, len(ends) - 1)), ends[-1]]
    lines = [
        f"{number}\n{stamp(start)} --> {stamp(end)}\n{text}\n"
        for number, (start, end, text) in enumerate(zip(borders, borders[1:], texts, strict=False), 1)
    ]
    (options.work / "talk.srt").write_text("\n".join(lines), encoding="utf-8")
    truth = list(zip([0.0, *ends[:-1]], ends, strict=True))
    compare(run(options.work, "am"), texts, truth, float(ends[-1]))


def stamp(seconds: float) -> str:
    minutes, rest = divmod(round(seconds * 1000), 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02},{rest % 1000:03}"


def long(options: argparse.Namespace) -> None:
    """A long recording with its transcript, of which two paragraphs are not said, and one that is said is missing."""
    sounds, texts = speech(options.clips, options.seed)
    others = speech(30, options.seed + 1)[1]
    written = list(texts)
    third = len(texts) // 3
    del written[third : third + 6]
    written[2 * third : 2 * third] = others[:12]
    pauses = np.random.default_rng(1).uniform(0.3, 0.8, len(sounds))
    parts = [
        np.concatenate([sound, np.zeros(round(pause * RATE), np.float32)])
        for sound, pause in zip(sounds, pauses, strict=True)
    ]
    ends = np.cumsum([part.size for part in parts]) / RATE
    soundfile.write(options.work / "talk.wav", np.concatenate(parts), RATE)
    (options.work / "talk.txt").write_text(" ".join(written), encoding="utf-8")
    truth = [(end - part.size / RATE, end - pause) for end, part, pause in zip(ends, parts, pauses, strict=True)]
    compare(run(options.work, "am"), texts, truth, sum(sound.size for sound in sounds) / RATE)


def run(folder: Path, language: str, min_snr_db: float = -20) -> Dataset:
    """Build a dataset of a folder in the folder itself."""
    settings = DatasetConfig(language=language, workers=1, min_snr_db=min_snr_db)
    scan = find_recordings([folder], language=language, workspace=folder)
    began, processor = time.monotonic(), time.process_time()

    def report(fact: Fact) -> None:
        if fact.level == "warning":
            print(f"  {wording.describe(fact)[:300]}")

    contents = prepare(scan.recordings, folder / "project" / "dataset", settings, report, problems=scan.problems)
    seconds = sum(source.seconds for source in contents.recordings.values())
    limits = folder / "project" / "dataset" / "text_check" / "limits.json"
    used = time.process_time() - processor
    print(f"built in {time.monotonic() - began:.0f} s, {used:.0f} s of processor, {seconds:.0f} s of sound")
    print(json.loads(limits.read_text()) if limits.is_file() else "no limits")
    return contents


SCENARIOS = {"errors": errors, "human": human, "cues": cues, "long": long}

if __name__ == "__main__":
    main()
