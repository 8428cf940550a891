import dataclasses
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
from safetensors.torch import save

from testing import random_model
from tests.training.small_gpt import liven
from tests.xtts.exporting import plain_model
from utils.config import DEFAULT_VOICE
from utils.core.errors import AmharicTtsError
from utils.core.storage import PARTIAL
from utils.media import audio
from utils.speech.loading import LoadedModel, open_model
from utils.speech.voices import DIGEST_BYTES, STALE_SECONDS, VoiceCache, own_names, voice_from, voice_named

PUBLISHED: dict[str, Any] = {"gpt_cond_len": 30, "gpt_cond_chunk_len": 4, "max_ref_len": 30, "sound_norm_refs": False}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    size = random_model.RandomModelSize(layers=1)
    model = open_model(random_model.build(tmp_path_factory.mktemp("models") / "tiny", sizes=size))
    with torch.no_grad():
        liven(model.gpt.get_submodule("conditioning_encoder"))
    return model


@pytest.fixture(scope="module")
def coqui(model: LoadedModel) -> Any:
    """coqui's whole model with the same weights and its own attention."""
    xtts = plain_model(model.folder)
    xtts.gpt.load_state_dict(model.gpt.state_dict(), strict=False)
    return xtts


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "voices"


def clip(folder: Path, name: str, seconds: float, rate: int = 22_050, channels: int = 1, seed: int = 0) -> Path:
    sound = audio.resample(random_model.synthetic_speech(seconds, seed), 22_050, rate)
    sides = np.stack([sound * (1 - 0.3 * side) for side in range(channels)], axis=1)
    soundfile.write(folder / name, sides, rate)
    return folder / name


def with_config(model: LoadedModel, folder: Path, **settings: object) -> LoadedModel:
    shutil.copytree(model.folder, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | settings))
    return dataclasses.replace(model, folder=folder)


@pytest.mark.parametrize(
    "case",
    [
        ([4.2], {}, ("wav", 22_050, 1)),  # the last chunk is too short to be used
        ([1.0, 1.5, 1.2], {"gpt_cond_len": 3, "gpt_cond_chunk_len": 2, "sound_norm_refs": True}, ("wav", 22_050, 1)),
        ([2.5], {"max_ref_len": 2}, ("wav", 44_100, 2)),
        pytest.param(([2.5], {"max_ref_len": 2}, ("ogg", 24_000, 2)), marks=pytest.mark.slow),
        pytest.param(([3.5], {"gpt_cond_len": 0, "gpt_cond_chunk_len": 1}, ("wav", 22_050, 1)), marks=pytest.mark.slow),
    ],
)
def test_a_voice_is_what_coqui_computes(
    model: LoadedModel, coqui: Any, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, case: Any
) -> None:
    import torchaudio

    def read(path: Path) -> tuple[torch.Tensor, int]:  # torchaudio itself reads no file without FFmpeg's libraries
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
        return torch.from_numpy(samples.T), rate

    monkeypatch.setattr(torchaudio, "load", read)
    seconds, settings, (extension, rate, channels) = case
    paths = [clip(tmp_path, f"{n}.{extension}", length, rate, channels, seed=n) for n, length in enumerate(seconds)]
    config = {**PUBLISHED, **settings}
    voice = voice_from(with_config(model, tmp_path / "model", **config), paths, cache)
    config["max_ref_length"] = config.pop("max_ref_len")
    prompt, embedding = coqui.get_conditioning_latents(audio_path=paths, **config)
    assert voice.prompt.shape == prompt.shape
    assert prompt.std() > 0.1
    assert float((voice.prompt - prompt).abs().max()) < 1e-4
    assert float((voice.embedding - embedding).abs().max()) < 1e-4


def test_a_voice_is_computed_once(
    model: LoadedModel, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = clip(tmp_path, "a.wav", 1.0)
    first = voice_from(model, [path], cache)
    monkeypatch.setattr(audio, "load", lambda *_, **__: pytest.fail("it was computed again"))
    again = voice_from(model, [shutil.copy(path, tmp_path / "other name.wav")], cache)
    assert torch.equal(first.prompt, again.prompt)
    assert torch.equal(first.embedding, again.embedding)
    assert (first.key, first.name, again.name) == (again.key, "a", "other name")
    assert [file.name for file in cache.iterdir()] == [f"{first.key}.safetensors"]


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    VoiceCache(tmp_path / "file" / "voices").put("0", tensors(0))
    assert "will be made again" in caplog.text


def test_audio_order_model_and_settings_are_part_of_the_key(model: LoadedModel, tmp_path: Path, cache: Path) -> None:
    one, two = clip(tmp_path, "1.wav", 1.0), clip(tmp_path, "2.wav", 1.0, seed=2)
    other = with_config(model, tmp_path / "model", gpt_cond_len=9)
    renamed = dataclasses.replace(model, fingerprint="another")
    pairs = [(model, [one]), (model, [two]), (model, [one, two]), (model, [two, one]), (other, [one]), (renamed, [one])]
    assert len({voice_from(each, paths, cache).key for each, paths in pairs}) == 6


@pytest.mark.parametrize("damage", ["truncated", "other shape", "nan"])
def test_a_damaged_entry_is_computed_again(model: LoadedModel, tmp_path: Path, cache: Path, damage: str) -> None:
    path = clip(tmp_path, "a.wav", 1.0)
    voice = voice_from(model, [path], cache)
    entry = cache / f"{voice.key}.safetensors"
    whole = entry.read_bytes()
    damages = {
        "truncated": whole[:-9],
        "other shape": save({"prompt": torch.zeros(1, 32, 8), "embedding": torch.zeros(1, 512, 1)}),
        "nan": save({"prompt": voice.prompt * torch.nan, "embedding": voice.embedding}),
    }
    entry.write_bytes(damages[damage])
    assert torch.equal(voice_from(model, [path], cache).prompt, voice.prompt)
    assert entry.read_bytes() == whole


def tensors(number: int) -> dict[str, torch.Tensor]:
    return {"prompt": torch.full((1, 2, 3), float(number)), "embedding": torch.zeros(1, 4, 1)}


def test_the_least_recently_used_voice_is_evicted_first(cache: Path) -> None:
    def cached() -> set[str]:
        return {path.stem for path in cache.glob("*.safetensors")}

    cache.mkdir()
    old, new = (cache / f".{name}{PARTIAL}" for name in ("old", "new"))  # half-written files
    old.touch()
    new.touch()
    os.utime(old, (time.time() - 2 * STALE_SECONDS,) * 2)
    voices = VoiceCache(cache, max_bytes=3 * (len(save(tensors(0))) + DIGEST_BYTES))
    for number in range(3):
        voices.put(str(number), tensors(number))
        os.utime(cache / f"{number}.safetensors", (number, number))
    assert voices.get("0", {"prompt": (1, 2, 3), "embedding": (1, 4, 1)})
    voices.put("3", tensors(3))
    assert cached() == {"0", "2", "3"}
    assert (old.exists(), new.exists()) == (False, True)
    VoiceCache(cache, max_bytes=1).put("4", tensors(4))
    assert cached() == {"4"}


def test_a_model_has_its_own_voices(model: LoadedModel, tmp_path: Path, cache: Path) -> None:
    speaker = random_model.SPEAKERS[0]
    assert own_names(model) == [DEFAULT_VOICE, *random_model.SPEAKERS]
    voices = {name: voice_named(model, name, cache) for name in own_names(model)}
    assert len({voice.key for voice in voices.values()}) == 3
    stored = torch.load(model.folder / "speakers_xtts.pth", weights_only=True)[speaker]
    assert torch.equal(voices[speaker].prompt, stored["gpt_cond_latent"].float())

    bare = dataclasses.replace(with_config(model, tmp_path / "model"), reference=None)
    assert own_names(bare) == list(random_model.SPEAKERS)
    assert voice_named(bare, "", cache).name == speaker
    (bare.folder / "speakers_xtts.pth").unlink()
    assert own_names(bare) == []
    with pytest.raises(AmharicTtsError, match="no voice of its own"):
        voice_named(bare, "", cache)


def test_a_voice_has_several_names(model: LoadedModel, tmp_path: Path, cache: Path) -> None:
    one, two = clip(tmp_path, "1.wav", 1.0), clip(tmp_path, "2.wav", 1.0, seed=2)
    names = {
        "": DEFAULT_VOICE,
        " Default ": DEFAULT_VOICE,
        "tiny abebe": "Tiny Abebe",
        f"{one} | {two}": "1 and 1 more",
        f"{one}|": "1",
    }
    assert {text: voice_named(model, text, cache).name for text in names} == names
    assert voice_named(model, f"{one}|{two}", cache).key == voice_from(model, [one, two], cache).key
    assert voice_named(model, "", cache).key == voice_from(model, [model.folder / "reference.wav"], cache).key


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Tiny Abbe", "Did you mean one of these: Tiny Abebe"),
        ("zzz.wav", "Tiny Abebe, Tiny Almaz."),
        ("{folder}/good.wav|Tiny Abebe", "Did you mean one of these: Tiny Abebe"),
        ("x" * 300, "xxx"),
        ("|", "|: no audio file or voice has this name"),
        ("{folder}", "folder"),
        ("{folder}/short.wav", "0.50 s"),
        ("{folder}/silent.wav", "silent.wav is silent"),
    ],
)
def test_an_invalid_voice_is_refused(model: LoadedModel, tmp_path: Path, cache: Path, name: str, message: str) -> None:
    clip(tmp_path, "good.wav", 1.5)
    clip(tmp_path, "short.wav", 0.5)
    soundfile.write(tmp_path / "silent.wav", np.zeros(44_100), 22_050)
    with pytest.raises(AmharicTtsError) as caught:
        voice_named(model, name.format(folder=tmp_path), cache)
    assert message in str(caught.value)
    assert caught.value.hint
    assert not list(cache.glob("*"))


@pytest.mark.parametrize(
    "stored",
    [
        {"a": {"gpt_cond_latent": torch.zeros(1, 32, 64)}},
        {"a": {"gpt_cond_latent": torch.zeros(1, 32, 8), "speaker_embedding": torch.zeros(1, 512, 1)}},
        Path("x"),  # a pickle that would have to be run
    ],
    ids=["no embedding", "another model", "pickle"],
)
def test_damaged_speakers_are_refused(model: LoadedModel, tmp_path: Path, stored: object) -> None:
    bare = with_config(model, tmp_path / "model")
    torch.save(stored, bare.folder / "speakers_xtts.pth")
    with pytest.raises(AmharicTtsError, match="speakers_xtts"):
        own_names(bare)
