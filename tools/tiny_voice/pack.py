"""Writes the training pack: a folder with which a machine without registry or internet trains the voice in minutes.

It holds the code of ``tools.tiny_voice.kit``, espeak-ng with its data, what is spoken, and the parts of the voice that
are trained further or needed beside them. The sound is made on the machine: hours of it would not fit.
"""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized
from tqdm import tqdm

from tools.tiny_voice import corpus, kit
from tools.tiny_voice.corpus import Corpus
from tools.tiny_voice.espeak import DATA, LIBRARY
from tools.tiny_voice.kit.__main__ import BASE, VOCODER, VOICES
from tools.tiny_voice.kit.clips import CODEC, TAKES, Take
from tools.tiny_voice.kit.clips import LIBRARY as ESPEAK
from tools.tiny_voice.kit.vocoder import Generator
from tools.tiny_voice.pitch import track_pitch
from tools.tiny_voice.speakers import BY_NAME, OTHERS, SPEAKERS, Speaker, say
from utils.core.languages import AMHARIC
from utils.core.storage import write_atomically
from utils.media import audio
from utils.media.rates import RATE
from utils.speech.loading import open_model
from utils.speech.voices import ConditioningSettings, encode_speaker
from utils.xtts.codec import CODE_FFT, AudioEncoder
from utils.xtts.language_packs import pack_for
from utils.xtts.model import gpt_state, load_vocoder, read_config
from utils.xtts.narrow_vocoder import without_silent_channels
from utils.xtts.tokenizer import Tokenizer

HEARD = ("genet", "ikram", "hiwot", "nardos", "jemila")  # the vocoder learns most from them; 150 to 260 Hz
CORPUS = Corpus(takes=1, phrases=4_000, word_lists=4_500, mixed=9_000, seed=7)
REFERENCES, HEARD_SECONDS = 3, 3  # clips of each voice that the GPT hears in turn, and how much of each
LOW = 140.0  # Hz: below it, pairs of codes hold a whole number of periods
PROBE = "ሰላም ለዓለም"
CONDITIONING = "conditioning_"
SYSTEM = Path("/usr/lib/x86_64-linux-gnu")
MODULES = (
    "tools/__init__.py",
    "tools/tiny_voice/__init__.py",
    *(f"tools/tiny_voice/{name}.py" for name in ("espeak", "grid", "pitch")),
)
SILENT_AUDIO = "void *create_audio_device_object(){return 0;} " + " ".join(
    f"int audio_object_{name}(){{return 0;}}"
    for name in ("open", "close", "write", "drain", "flush", "destroy", "strerror")
)
VOICES_OF_ALL = (*SPEAKERS, *OTHERS)


def write_pack(base: Path, folder: Path) -> None:
    """Write the pack of a voice."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_code(folder)
    _write_espeak(folder / ESPEAK)
    torch.save({name: weight.half() for name, weight in gpt_weights(base).items()}, folder / BASE)
    if read_config(base).model_args.output_sample_rate == RATE:  # it was trained on the grid, so that goes on
        torch.save({name: weight.half() for name, weight in vocoder_weights(base).items()}, folder / VOCODER)
    codec = codec_weights(AudioEncoder.load(base))
    torch.save({name: weight.clone().contiguous() for name, weight in codec.items()}, folder / CODEC)
    _write_voices(base, folder)
    takes = list(_takes(Tokenizer.load(base)))
    write_atomically(folder / TAKES, "".join(f"{take.line()}\n" for take in takes))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{len(takes):,} takes, {size / 1e6:.1f} MB in {folder}")


def _write_code(folder: Path) -> None:
    own = Path(kit.__file__).parent
    root = own.parents[2]
    for name in (*MODULES, *(str(path.relative_to(root)) for path in own.glob("*.py"))):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, folder / name)


def _write_espeak(folder: Path) -> None:
    """Copy the library and what Amharic needs of its data; a library without sound takes the place of libpcaudio."""
    shutil.copytree(SYSTEM / DATA, folder / DATA, ignore=_other_languages, dirs_exist_ok=True)
    for name in (LIBRARY, "libsonic.so.0"):
        shutil.copyfile(SYSTEM / name, folder / name)
    source = folder / "silent.c"
    source.write_text(SILENT_AUDIO, "utf-8")
    target = folder / "libpcaudio.so.0"
    compiler = shutil.which("cc") or "cc"
    subprocess.run([compiler, "-shared", "-fPIC", f"-Wl,-soname,{target.name}", "-o", target, source], check=True)


def _other_languages(_: str, names: list[str]) -> set[str]:
    return {name for name in names if name.endswith("_dict") and name not in {"am_dict", "en_dict"}}


def gpt_weights(base: Path) -> dict[str, Tensor]:
    """Return the weights of a voice that the kit trains."""
    return {name: weight for name, weight in gpt_state(base).items() if not name.startswith(CONDITIONING)}


def vocoder_weights(base: Path) -> dict[str, Tensor]:
    """Return the vocoder of a voice as the kit trains it."""
    narrow: Any = without_silent_channels(load_vocoder(base)[0])
    channels = [narrow.conv_pre.out_channels, *(up.out_channels for up in narrow.ups)]
    generator = Generator(narrow.conv_pre.in_channels, channels)
    with torch.no_grad():
        for name, layer in narrow.named_modules():
            if isinstance(layer, nn.Conv1d | nn.ConvTranspose1d):
                same: Any = generator.get_submodule(name)
                if is_parametrized(same):
                    same.weight = layer.weight.data
                else:
                    same.weight.copy_(layer.weight)
                if layer.bias is not None:
                    same.bias.copy_(layer.bias)
    return dict(generator.state_dict())


def codec_weights(encoder: AudioEncoder) -> dict[str, Tensor]:
    """Return what the kit's codec needs."""
    codec = {f"encoder.{name}": weight for name, weight in encoder.encoder.state_dict().items()}
    filters = encoder.mels[CODE_FFT].get_buffer("mel_scale.fb")
    return codec | {"codebook.embed": encoder.codebook.embed, "filters": filters, "stats": encoder.stats.flatten()}


def _write_voices(base: Path, folder: Path) -> None:
    """Let the voice hear some clips of each speaker, unless that was done."""
    if (folder / VOICES).is_file():
        return
    model, settings, path = open_model(base), ConditioningSettings.of(base), folder / "reference.wav"
    texts = sorted(corpus.read_sentences()["train"], key=len)[-REFERENCES:]
    prompts, embeddings = [], []
    for speaker in tqdm(VOICES_OF_ALL, "voices"):
        heard = []
        for text in texts:
            audio.save(path, say(text, speaker)[: HEARD_SECONDS * RATE], RATE)
            heard.append(encode_speaker(model, [path], settings))
        prompts.append(torch.cat([one["prompt"] for one in heard]))
        embeddings.append(torch.stack([one["embedding"][0] for one in heard]).mean(0))
    path.unlink()
    torch.save({"prompts": torch.stack(prompts).half(), "embeddings": torch.stack(embeddings).half()}, folder / VOICES)


def is_low(speaker: Speaker) -> bool:
    """Tell whether a speaker needs pairs of codes for pitch steps that are small enough."""
    track = track_pitch(say(PROBE, speaker), RATE)
    return bool(np.median(track.f0[track.voiced]) < LOW)


def _takes(tokenizer: Tokenizer) -> Iterator[Take]:
    """Yield what is measured, then what is learnt from, in random order."""
    sentences = corpus.read_sentences()
    numbers = {speaker.name: number for number, speaker in enumerate(VOICES_OF_ALL)}
    low = {speaker.name: is_low(speaker) for speaker in VOICES_OF_ALL}
    random, pack = np.random.default_rng(CORPUS.seed), pack_for(AMHARIC.code)
    known: dict[str, tuple[str, list[int]]] = {}

    def take(name: str, text: str, speaker: Speaker) -> Take:
        if text not in known:
            known[text] = pack.phonemize(pack.normalize(text)), tokenizer.encode(text, AMHARIC.code)
        phones, ids = known[text]
        who, voice = speaker.name, speaker.varied(random)
        block, heard = 1 + low[who], who in HEARD
        settings = voice.variant, voice.pitch, voice.pace, voice.range, voice.warp
        return Take(f"{name}-{who}", numbers[who], phones, ids, *settings, block=block, heard=heard)

    def spoken(what: str, texts: Sequence[str]) -> Iterator[Take]:
        for number, text in enumerate(tqdm(texts, what)):
            yield take(f"{what}-{number}", text, BY_NAME[HEARD[number % len(HEARD)]])

    for one in spoken("unseen", sentences["eval"][: CORPUS.judged]):
        yield replace(one, unseen=True)
    texts, mixed = sentences["train"], corpus.mixed_sentences(CORPUS)
    rest = list(spoken("women", [*mixed[::2], *texts, *texts]))
    others = corpus.choose_takes(CORPUS, mixed[1::2])
    rest += [take(one.name, one.text, BY_NAME[one.speaker]) for one in tqdm(others, "others")]
    yield from (rest[number] for number in random.permutation(len(rest)))
