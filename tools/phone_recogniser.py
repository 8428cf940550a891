"""Train the recogniser that checks texts: python -m tools.phone_recogniser --work FOLDER --seconds 1500.

espeak-ng reads our sentences as our front end writes them, in many voices; noise, music, telephone, rooms, hum, speed
and pitch are varied anew in each pass. With ``--people`` the recogniser also learns from recordings with texts; those
of every fifth reader can be left out, to measure it. Every minute the state is saved, so that the command continues
where it was stopped, and a later call with more ``--seconds`` trains longer.
"""

import argparse
import csv
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from tools.tiny_voice.corpus import Corpus, choose_takes, read_sentences
from tools.tiny_voice.speakers import HELD_OUT, Speaker, say
from utils.media import audio
from utils.media.audio import Samples
from utils.media.rates import RATE as ESPEAK_RATE
from utils.recognition.adaptation import BATCH_SECONDS, Example, ctc_losses, is_learnable, mask_bands
from utils.recognition.phone_recogniser import EMBEDDED, PhoneRecogniser, load_recogniser, log_mels, save_recogniser
from utils.recognition.units import PHONES, units_of

RATE = 16_000
SAVE_SECONDS = 60
PEAK_RATE = 2e-3
WARMUP = 100
FOLDS = 5
EASY = 0.15  # share of the training in which the sound is left as it is more and more rarely
# espeak-ng's voices that sound like people; those of the embedded voice's held-out speakers are left for measuring.
VARIANTS = (
    "m1 m2 m3 m4 m5 m6 m7 m8 f1 f2 f3 f4 Alex Mike pablo paul max Alicia Annie belinda linda shelby aunty "
    "adam anika benjamin boris caleb david ed edward edward2 grandma grandpa iven iven2 iven3 iven4 john kaukovalta "
    "Lee marcelo Marco Mario Michael miguel norbert quincy rob robert sandro steph steph2 steph3 Tweaky victor "
    "Andy Gene Diogo Jacky klatt klatt2 klatt3 klatt4"
).split()


@dataclass(frozen=True)
class Utterance:
    """Speech at 16 kHz and the units that are spoken."""

    samples: Samples
    units: tuple[int, ...]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=Path, required=True, help="folder for the speech and the training state")
    parser.add_argument("--seconds", type=float, default=1500.0, help="processor seconds of training in all")
    parser.add_argument("--utterances", type=int, default=4500, help="utterances that are rendered once")
    parser.add_argument("--people", type=Path, help="folders of recordings, each with a texts.csv: file|text|reader")
    parser.add_argument("--fold", type=int, help=f"leave out every {FOLDS}th reader, beginning with this one")
    parser.add_argument("--start", type=Path, help="recogniser to start from")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path, default=EMBEDDED, help="file of the trained recogniser")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.work.mkdir(parents=True, exist_ok=True)
    utterances = read_or_render(options.work / f"speech-{options.utterances}.npz", options.utterances)
    utterances += 2 * read_people(options.people, options.fold) if options.people else []
    print(f"{sum(item.samples.size for item in utterances) / RATE / 3600:.2f} h of speech", flush=True)
    train(utterances, options.work / "state.pt", options.seconds, options.output, options.start)
    return 0


def read_or_render(path: Path, count: int) -> list[Utterance]:
    """Read the speech, or render it: half sentences, half words of the lexicon in any order."""
    if not path.is_file():
        random = np.random.default_rng(11)
        sentences = read_sentences()["train"]
        lists = [take.text for take in choose_takes(Corpus(sentences=4)) if take.kind == "phrase"]
        rendered = []
        for number in range(count):
            if number % 3:
                text = sentences[int(random.integers(len(sentences)))]
            else:
                text = " ".join(lists[int(random.integers(len(lists)))] for _ in range(2))
            rendered.append(render(text, draw_speaker(random)))
        sounds = [np.round(item * 32767).astype(np.int16) for item, _ in rendered]
        labels = [np.array(label, np.uint8) for _, label in rendered]
        np.savez(path, sounds=np.concatenate(sounds), labels=np.concatenate(labels),
                 sizes=[sound.size for sound in sounds], lengths=[label.size for label in labels])  # fmt: skip
    file = np.load(path)
    sounds = np.split(file["sounds"], np.cumsum(file["sizes"])[:-1])
    labels = np.split(file["labels"], np.cumsum(file["lengths"])[:-1])
    return [
        Utterance((sound / np.float32(32767)).astype(np.float32), tuple(label.tolist()))
        for sound, label in zip(sounds, labels, strict=True)
        if label.size and label.size < 160
    ]


def read_people(folder: Path, fold: int | None) -> list[Utterance]:
    """Read the recordings of people, except those of the readers of a fold."""
    left_out = people(folder, fold) if fold is not None else {}
    units = units_of("am")
    return [
        Utterance(audio.load(path, RATE), tuple(unit for word in units.words(text) for unit in word.units))
        for name, clips in people(folder).items()
        for path, text in clips
        if name not in left_out
    ]


def people(folder: Path, fold: int | None = None) -> dict[str, list[tuple[Path, str]]]:
    """List the clips of each reader, or of those in one fold; sessions of one list are of the same reader."""
    readers: dict[str, list[tuple[Path, str]]] = {}
    for file in sorted(folder.glob("*/texts.csv")):
        with file.open(encoding="utf-8", newline="") as lines:
            for path, text, reader in list(csv.reader(lines, delimiter="|", quoting=csv.QUOTE_NONE))[1:]:
                name = file.parent.name if reader.startswith("session") else reader
                readers.setdefault(name, []).append((file.parent / path, text))
    return {name: readers[name] for at, name in enumerate(sorted(readers)) if fold is None or at % FOLDS == fold}


def draw_speaker(random: np.random.Generator) -> Speaker:
    pitch, pace, intonation = random.integers(10, 90), random.integers(110, 195), random.integers(20, 85)
    variant = VARIANTS[int(random.integers(len(VARIANTS)))]
    return Speaker(variant, variant, int(pitch), int(pace), int(intonation))


def render(text: str, speaker: Speaker) -> tuple[Samples, tuple[int, ...]]:
    """Speak a text; return the sound at 16 kHz and its units."""
    units = tuple(unit for word in units_of("am").words(text) for unit in word.units)
    return audio.resample(say(text, speaker), ESPEAK_RATE, RATE), units


# --- what happens to the sound on its way ---


def vary(sound: Samples, random: np.random.Generator, others: list[Utterance], share: float) -> Samples:
    """Return the sound as another recording might have it; only this share is changed."""
    if random.random() > share:
        return sound
    sound = at_speed(sound, random.uniform(0.85, 1.18))
    before, after = (random.uniform(0, 0.6) for _ in range(2))
    sound = np.pad(sound, (round(before * RATE), round(after * RATE)))
    if random.random() < 0.4:
        sound = in_room(sound, random.uniform(0.1, 0.7), random.uniform(0.2, 0.9), random)
    if random.random() < 0.8:
        kind = random.random()
        if kind < 0.55:
            noise = coloured_noise(sound.size, random)
        elif kind < 0.85:
            noise = chords(sound.size, random)
        else:
            noise = np.resize(others[int(random.integers(len(others)))].samples, sound.size)
        low = 12.0 if kind >= 0.85 else 3.0
        sound = mixed(sound, noise, random.uniform(low, 35))
    sound = tilted(sound, random)
    if random.random() < 0.2:
        sound = with_hum(sound, random)
    if random.random() < 0.25:
        sound = by_telephone(sound)
    return sound


def at_speed(sound: Samples, factor: float) -> Samples:
    """Play faster or slower, which changes the pitch and the size of the speaker too."""
    places = np.arange(0, sound.size - 1, factor)
    return np.asarray(np.interp(places, np.arange(sound.size), sound), np.float32)


def in_room(sound: Samples, seconds: float, wet: float, random: np.random.Generator) -> Samples:
    """Add the echo of a room in which sound falls by 60 dB in these seconds."""
    size = round(seconds * RATE)
    echo = random.standard_normal(size) * 10 ** (-3 * np.arange(size) / size)
    total = sound.size + size
    length = 1 << (total - 1).bit_length()
    wide = np.fft.irfft(np.fft.rfft(sound, length) * np.fft.rfft(echo / np.linalg.norm(echo), length), length)
    return np.asarray(sound + wet * wide[: sound.size], np.float32)


def coloured_noise(size: int, random: np.random.Generator) -> Samples:
    """Return noise whose power falls with some power of the frequency."""
    spectrum = np.fft.rfft(random.standard_normal(size))
    falling = np.maximum(1.0, np.arange(spectrum.size) * RATE / size / 50) ** random.uniform(-1.2, 0.1)
    return np.asarray(np.fft.irfft(spectrum * falling, size), np.float32)


def chords(size: int, random: np.random.Generator) -> Samples:
    """Return plain music: chords of harmonic tones that fade."""
    music, start = np.zeros(size, np.float32), 0
    while start < size:
        length = min(size - start, round(random.uniform(0.15, 1.0) * RATE))
        time_axis = np.arange(length) / RATE
        for _ in range(int(random.integers(1, 4))):
            pitch = 110 * 2 ** (random.integers(0, 36) / 12)
            for harmonic in range(1, 7):
                if pitch * harmonic < RATE / 2:
                    tone = np.sin(2 * np.pi * pitch * harmonic * time_axis + random.uniform(0, 6))
                    music[start : start + length] += (tone * np.exp(-3 * time_axis) / harmonic).astype(np.float32)
        start += length
    return music


def mixed(sound: Samples, noise: Samples, snr_db: float) -> Samples:
    level = np.sqrt(np.mean(np.square(sound)) / max(1e-9, float(np.mean(np.square(noise)))))
    return np.asarray(sound + noise * level * 10 ** (-snr_db / 20), np.float32)


def with_hum(sound: Samples, random: np.random.Generator) -> Samples:
    """Add the hum of the mains with its harmonics, and a constant offset."""
    base, phase = random.uniform(48, 62), 2 * np.pi * np.arange(sound.size) / RATE
    hum = sum(np.sin(phase * base * harmonic) / harmonic**2 for harmonic in range(1, 5))
    return mixed(sound, np.asarray(hum, np.float32), random.uniform(0, 25)) + np.float32(random.uniform(-0.05, 0.05))


def tilted(sound: Samples, random: np.random.Generator) -> Samples:
    """Change the tone as a microphone does."""
    spectrum = np.fft.rfft(sound)
    points = random.uniform(-8, 8, 6)
    gain = np.interp(np.linspace(0, 5, spectrum.size), np.arange(6), points)
    return np.asarray(np.fft.irfft(spectrum * 10 ** (gain / 20), sound.size), np.float32)


def by_telephone(sound: Samples) -> Samples:
    """Keep 300 to 3400 Hz, in 8 bits of mu-law."""
    spectrum = np.fft.rfft(sound)
    frequencies = np.fft.rfftfreq(sound.size, 1 / RATE)
    narrow = np.fft.irfft(spectrum * ((frequencies > 300) & (frequencies < 3400)), sound.size)
    scaled = narrow / max(1e-6, float(np.abs(narrow).max()))
    coded = np.round(np.sign(scaled) * np.log1p(255 * np.abs(scaled)) / np.log(256) * 127) / 127
    return np.asarray(np.sign(coded) * (256 ** np.abs(coded) - 1) / 255, np.float32)


# --- training ---


def train(
    utterances: list[Utterance], state_file: Path, seconds: float, output: Path, start: Path | None = None
) -> None:
    """Train for these processor seconds in all, and write the recogniser with half the precision."""
    torch.manual_seed(1)
    model = load_recogniser(start, units_of("am")) if start else PhoneRecogniser(len(PHONES))
    peak = PEAK_RATE / 2 if start else PEAK_RATE
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=1e-2)
    used, step = 0.0, 0
    if state_file.is_file():
        state = torch.load(state_file, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        used, step = state["used"], state["step"]
    random, masks = np.random.default_rng(1000 + step), torch.Generator().manual_seed(step)
    held_out = evaluation_set()
    batches = draw_batches(utterances, random)
    began, saved, running = time.process_time(), time.monotonic(), []
    while (done := used + time.process_time() - began) < seconds:
        for group in optimizer.param_groups:  # rises, then falls to nothing along half a cosine
            group["lr"] = float(
                peak * min(1, (step + 1) / WARMUP) * (0.02 + 0.98 * np.cos(np.pi / 2 * done / seconds) ** 2)
            )
        share = min(0.9, done / (EASY * seconds))
        examples = [
            (mask_bands(log_mels(vary(item.samples, random, utterances, share)), masks), item.units)
            for item in next(batches)
        ]
        model.train()
        loss = ctc_losses(model, list(filter(is_learnable, examples))).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        running.append(loss.item())
        if time.monotonic() - saved > SAVE_SECONDS:
            saved = time.monotonic()
            save(model, optimizer, done, step, state_file, output)
            wrong = errors(model, held_out)
            print(f"step {step}: {done:.0f} s, loss {np.mean(running[-50:]):.3f}, phone errors {wrong:.1%}", flush=True)
    save(model, optimizer, done, step, state_file, output)
    print(f"{output}: {output.stat().st_size / 1e6:.2f} MB, phone errors of new voices {errors(model, held_out):.1%}")


def draw_batches(utterances: list[Utterance], random: np.random.Generator) -> Iterator[list[Utterance]]:
    """Yield batches of utterances of similar length, in passes over all of them."""
    while True:
        order = sorted(utterances, key=lambda item: item.samples.size * random.uniform(0.9, 1.1))
        batches: list[list[Utterance]] = [[]]
        for item in order:
            if sum(other.samples.size for other in batches[-1]) > BATCH_SECONDS * RATE:
                batches.append([])
            batches[-1].append(item)
        for number in random.permutation(len(batches)):
            yield batches[number]


def evaluation_set(count: int = 40) -> list[Example]:
    """Return held-out sentences in voices that are never learnt, half of them with noise."""
    random, examples = np.random.default_rng(3), []
    for number, text in enumerate(read_sentences()["eval"][:count]):
        sound, units = render(text, HELD_OUT[number % len(HELD_OUT)])
        if number % 2:
            sound = mixed(sound, coloured_noise(sound.size, random), 15)
        examples.append((log_mels(sound), units))
    return examples


def errors(model: PhoneRecogniser, examples: list[Example]) -> float:
    """Return the share of wrong phones in the most likely path."""
    import jiwer

    model.eval()
    written, heard = [], []
    for mels, units in examples:
        with torch.inference_mode():
            best = torch.unique_consecutive(model(mels[None])[0].argmax(-1))
        written.append(" ".join(map(str, units)))
        heard.append(" ".join(map(str, best[best > 0].tolist())))
    return float(jiwer.wer(written, heard))


def save(
    model: PhoneRecogniser, optimizer: torch.optim.Optimizer, used: float, step: int, state: Path, output: Path
) -> None:
    partial = state.with_suffix(".partial")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "used": used, "step": step}, partial)
    partial.replace(state)
    save_recogniser(model, output)


if __name__ == "__main__":
    sys.exit(main())
