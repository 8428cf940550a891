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

from tests.training.small_gpt import liven
from tests.xtts.exporting import plain_model
from utils.config import DEFAULT_VOICE
from utils.core.errors import AmharicTtsError
from utils.core.storage import PARTIAL
from utils.media import audio
from utils.speech.loaded_model import LoadedModel
from utils.speech.loading import open_model
from utils.speech.speaker_conditioning import ConditioningSettings, latent_shapes
from utils.speech.voices import STALE_SECONDS, VoiceCache, own_names, voice_from, voice_named
from utils.xtts import random_model

PUBLISHED: dict[str, Any] = {"gpt_cond_len": 30, "gpt_cond_chunk_len": 4, "max_ref_len": 30, "sound_norm_refs": False}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    folder = random_model.build(
        tmp_path_factory.mktemp("models") / "tiny", sizes=random_model.RandomModelSize(layers=1)
    )
    opened = open_model(folder)
    with torch.no_grad():
        liven(opened.gpt.get_submodule("conditioning_encoder"))
    return opened


@pytest.fixture(scope="module")
def plain(opened: LoadedModel) -> Any:
    """coqui's whole model with the same weights, whose attention is written out."""
    model = plain_model(opened.folder)
    model.gpt.load_state_dict(opened.gpt.state_dict(), strict=False)
    return model


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "voices"


def clip(folder: Path, name: str, seconds: float, rate: int = 22_050, channels: int = 1, seed: int = 0) -> Path:
    sound = audio.resample(random_model.synthetic_speech(seconds, seed), 22_050, rate)
    sides = np.stack([sound * (1 - 0.3 * side) for side in range(channels)], axis=1)
    soundfile.write(folder / name, sides, rate)
    return folder / name


def with_config(opened: LoadedModel, folder: Path, **settings: object) -> LoadedModel:
    shutil.copytree(opened.folder, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | settings))
    return dataclasses.replace(opened, folder=folder)


@pytest.mark.parametrize(
    ("seconds", "settings"),
    [
        ([4.2], {}),  # the last chunk is too short to be heard
        ([1.0, 1.5, 1.2], {"gpt_cond_len": 3, "gpt_cond_chunk_len": 2, "sound_norm_refs": True}),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ([9.0], {}),
                ([4.34], {}),
                ([1.0], {}),
                ([3.0], {"gpt_cond_len": 2, "gpt_cond_chunk_len": 2}),  # one chunk, as coqui's signature has it
                ([3.0], {"gpt_cond_len": 1, "gpt_cond_chunk_len": 2}),
                ([3.5], {"gpt_cond_len": 0, "gpt_cond_chunk_len": 1}),  # all of it
                ([3.0, 2.0], {"max_ref_len": 2}),
                ([2.0], {"sound_norm_refs": True}),
            )
        ),
    ],
)
def test_a_voice_is_what_coqui_hears(
    opened: LoadedModel,
    plain: Any,
    tmp_path: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    seconds: list[float],
    settings: dict[str, Any],
) -> None:
    paths = [clip(tmp_path, f"{number}.wav", length, seed=number) for number, length in enumerate(seconds)]
    compare(with_config(opened, tmp_path / "model", **{**PUBLISHED, **settings}), plain, paths, cache, monkeypatch)


@pytest.mark.parametrize(
    "kind",
    [
        ("a.wav", 44_100, 2),
        pytest.param(("a.flac", 16_000, 1), marks=pytest.mark.slow),
        pytest.param(("a.wav", 48_000, 1), marks=pytest.mark.slow),
        pytest.param(("a.ogg", 24_000, 2), marks=pytest.mark.slow),
    ],
)
def test_rates_channels_and_formats_change_nothing(
    opened: LoadedModel,
    plain: Any,
    tmp_path: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: tuple[str, int, int],
) -> None:
    name, rate, channels = kind
    paths = [clip(tmp_path, name, 2.5, rate, channels)]
    changed = with_config(opened, tmp_path / "model", **{**PUBLISHED, "max_ref_len": 2})
    compare(changed, plain, paths, cache, monkeypatch)


def compare(opened: LoadedModel, plain: Any, paths: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare with what ``Xtts.synthesize`` asks for; torchaudio itself reads no file without FFmpeg's libraries."""
    import torchaudio

    def read(path: Path) -> tuple[torch.Tensor, int]:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
        return torch.from_numpy(samples.T), rate

    monkeypatch.setattr(torchaudio, "load", read)
    config = json.loads((opened.folder / "config.json").read_text())
    told = {name: config[name] for name in PUBLISHED}
    told["max_ref_length"] = told.pop("max_ref_len")
    prompt, embedding = plain.get_conditioning_latents(audio_path=paths, **told)
    voice = voice_from(opened, paths, cache)
    assert voice.prompt.shape == prompt.shape
    assert prompt.std() > 0.1
    assert float((voice.prompt - prompt).abs().max()) < 1e-4
    assert float((voice.embedding - embedding).abs().max()) < 1e-4


def test_the_settings_are_those_of_the_config_and_else_those_of_coqui(opened: LoadedModel, tmp_path: Path) -> None:
    assert dataclasses.asdict(ConditioningSettings.of(opened.folder)) == {
        "gpt_cond_len": 12,
        "gpt_cond_chunk_len": 4,
        "max_ref_len": 10,
        "sound_norm_refs": False,
    }
    assert ConditioningSettings.of(with_config(opened, tmp_path / "a", **PUBLISHED).folder) == ConditioningSettings(
        **PUBLISHED
    )
    bare = with_config(opened, tmp_path / "b").folder / "config.json"
    config = json.loads(bare.read_text())
    bare.write_text(json.dumps({name: config[name] for name in config if not name.startswith(("gpt_cond", "max_ref"))}))
    assert ConditioningSettings.of(bare.parent) == ConditioningSettings.of(opened.folder)


@pytest.mark.parametrize("settings", [{"max_ref_len": 0}, {"gpt_cond_chunk_len": None}, {"gpt_cond_len": "long"}])
def test_odd_settings_are_refused(opened: LoadedModel, tmp_path: Path, settings: dict[str, object]) -> None:
    folder = with_config(opened, tmp_path / "model", **settings).folder
    with pytest.raises(AmharicTtsError, match="invalid reference lengths"):
        ConditioningSettings.of(folder)


def test_a_voice_is_heard_once_and_then_read(
    opened: LoadedModel, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = clip(tmp_path, "a.wav", 1.0)
    first = voice_from(opened, [path], cache)
    monkeypatch.setattr(audio, "load", lambda *_, **__: pytest.fail("it was heard again"))
    again = voice_from(opened, [shutil.copy(path, tmp_path / "other name.wav")], cache)
    assert torch.equal(first.prompt, again.prompt)
    assert torch.equal(first.embedding, again.embedding)
    assert (first.key, first.name, again.name) == (again.key, "a", "other name")
    assert [file.name for file in cache.iterdir()] == [f"{first.key}.safetensors"]


def test_sounds_their_order_the_model_and_its_settings_make_another_voice(
    opened: LoadedModel, tmp_path: Path, cache: Path
) -> None:
    one, two = clip(tmp_path, "1.wav", 1.0), clip(tmp_path, "2.wav", 1.0, seed=2)
    other = with_config(opened, tmp_path / "model", gpt_cond_len=9)
    renamed = dataclasses.replace(opened, fingerprint="another")
    asked = [(opened, [one]), (opened, [two]), (opened, [one, two]), (opened, [two, one]), (other, [one])]
    found = [voice_from(model, paths, cache) for model, paths in [*asked, (renamed, [one])]]
    assert len({voice.key for voice in found}) == 6
    assert found[2].name == "1 and 1 more"


@pytest.mark.parametrize("damage", [b"", b"nonsense", "cut", "foreign", "no number"])
def test_a_damaged_entry_is_made_anew(opened: LoadedModel, tmp_path: Path, cache: Path, damage: bytes | str) -> None:
    from safetensors.torch import save

    path = clip(tmp_path, "a.wav", 1.0)
    voice = voice_from(opened, [path], cache)
    entry = cache / f"{voice.key}.safetensors"
    whole = entry.read_bytes()
    damages = {
        "cut": whole[:-9],
        "foreign": save({"prompt": torch.zeros(1, 32, 8), "embedding": torch.zeros(1, 512, 1)}),
        "no number": save({"prompt": voice.prompt * torch.nan, "embedding": voice.embedding}),
    }
    entry.write_bytes(damages[damage] if isinstance(damage, str) else damage)
    assert torch.equal(voice_from(opened, [path], cache).prompt, voice.prompt)
    assert entry.read_bytes() == whole


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(
    opened: LoadedModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    assert voice_from(opened, [clip(tmp_path, "a.wav", 1.0)], tmp_path / "file" / "voices").prompt.isfinite().all()
    assert "not cached" in caplog.text


def entry(number: int) -> dict[str, torch.Tensor]:
    return {"prompt": torch.full((1, 2, 3), float(number)), "embedding": torch.zeros(1, 4, 1)}


def kept(cache: VoiceCache) -> set[str]:
    return {path.stem for path in cache.folder.glob("*.safetensors")}


def test_what_was_used_longest_ago_goes_first(cache: Path) -> None:
    voices, wanted = VoiceCache(cache, max_voices=3), {"prompt": (1, 2, 3), "embedding": (1, 4, 1)}
    for number in range(3):
        voices.put(str(number), entry(number))
        os.utime(cache / f"{number}.safetensors", (number, number))
    assert voices.get("0", wanted)
    voices.put("3", entry(3))
    assert kept(voices) == {"0", "2", "3"}
    assert voices.get("1", wanted) is None


def test_bytes_are_bounded_too_and_the_newest_always_stays(cache: Path) -> None:
    VoiceCache(cache).put("0", entry(0))
    size = (cache / "0.safetensors").stat().st_size
    voices = VoiceCache(cache, max_bytes=2 * size)
    for number in range(1, 4):
        os.utime(cache / f"{number - 1}.safetensors", (number, number))
        voices.put(str(number), entry(number))
    assert kept(voices) == {"2", "3"}
    VoiceCache(cache, max_bytes=1).put("4", entry(4))
    assert kept(voices) == {"4"}


def test_what_a_kill_left_half_written_is_swept_when_it_is_old(cache: Path) -> None:
    cache.mkdir()
    old, new = (cache / f".{name}{PARTIAL}" for name in ("old", "new"))
    old.touch()
    new.touch()
    os.utime(old, (time.time() - 2 * STALE_SECONDS,) * 2)
    VoiceCache(cache).put("0", entry(0))
    assert (old.exists(), new.exists()) == (False, True)


def test_a_model_brings_its_reference_and_its_speakers(opened: LoadedModel, cache: Path) -> None:
    assert own_names(opened) == [DEFAULT_VOICE, *random_model.SPEAKERS]
    found = {name: voice_named(opened, name, cache) for name in own_names(opened)}
    assert len({voice.key for voice in found.values()}) == 3
    stored = torch.load(opened.folder / "speakers_xtts.pth", weights_only=True)[random_model.SPEAKERS[0]]
    voice = found[random_model.SPEAKERS[0]]
    assert torch.equal(voice.prompt, stored["gpt_cond_latent"])
    assert torch.equal(voice.embedding, stored["speaker_embedding"])
    assert all(tuple(voice.prompt.shape) == latent_shapes(opened)["prompt"] for voice in found.values())


def test_a_voice_goes_by_any_of_its_names(opened: LoadedModel, tmp_path: Path, cache: Path) -> None:
    one, two = clip(tmp_path, "1.wav", 1.0), clip(tmp_path, "2.wav", 1.0, seed=2)
    named = {
        "": DEFAULT_VOICE,
        " Default ": DEFAULT_VOICE,
        "tiny abebe": "Tiny Abebe",
        str(one): "1",
        f"{one} | {two}": "1 and 1 more",
        f"{one}|": "1",
    }
    assert {text: voice_named(opened, text, cache).name for text in named} == named
    assert voice_named(opened, f"{one}|{two}", cache).key == voice_from(opened, [one, two], cache).key
    assert voice_named(opened, "", cache).key == voice_from(opened, [opened.folder / "reference.wav"], cache).key


def test_without_a_reference_the_first_speaker_is_the_models_own_voice(
    opened: LoadedModel, tmp_path: Path, cache: Path
) -> None:
    bare = with_config(opened, tmp_path / "model")
    (bare.folder / "reference.wav").unlink()
    assert own_names(bare) == list(random_model.SPEAKERS)
    assert voice_named(bare, "", cache).name == random_model.SPEAKERS[0]
    (bare.folder / "speakers_xtts.pth").unlink()
    assert own_names(bare) == []
    with pytest.raises(AmharicTtsError, match="no voice of its own"):
        voice_named(bare, "", cache)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Tiny Abbe", "Did you mean Tiny Abebe"),
        ("zzz.wav", "Tiny Abebe, Tiny Almaz."),
        ("{folder}/good.wav|Tiny Abebe", "Did you mean Tiny Abebe"),
        ("x" * 300, "xxx"),
        ("|", "'|'"),
        ("{folder}", "folder"),
        ("{folder}/short.wav", "short.wav is only 0.50 s long"),
        ("{folder}/silent.wav", "silent.wav is silent"),
        ("{folder}/text.wav", "text.wav"),
        ("{folder}/empty.wav", "empty.wav"),
        ("{folder}/good.wav|{folder}/short.wav", "short.wav"),
    ],
)
def test_what_is_not_a_voice_is_refused(
    opened: LoadedModel, tmp_path: Path, cache: Path, text: str, message: str
) -> None:
    clip(tmp_path, "good.wav", 1.5)
    clip(tmp_path, "short.wav", 0.5)
    soundfile.write(tmp_path / "silent.wav", np.zeros(44_100), 22_050)
    (tmp_path / "text.wav").write_text("no sound")
    (tmp_path / "empty.wav").touch()
    with pytest.raises(AmharicTtsError) as caught:
        voice_named(opened, text.format(folder=tmp_path), cache)
    assert message in str(caught.value)
    assert caught.value.hint
    assert not list(cache.glob("*"))


@pytest.mark.parametrize(
    "stored",
    [
        [1, 2],
        {"a": {"gpt_cond_latent": torch.zeros(1, 32, 64)}},
        {"a": {"gpt_cond_latent": torch.zeros(1, 32, 8), "speaker_embedding": torch.zeros(1, 512, 1)}},
        Path("x"),  # a pickle that would have to be run
        None,
    ],
    ids=["list", "no embedding", "another model", "pickle", "no zip"],
)
def test_damaged_speakers_are_refused(opened: LoadedModel, tmp_path: Path, stored: object) -> None:
    bare = with_config(opened, tmp_path / "model")
    if stored is None:
        (bare.folder / "speakers_xtts.pth").write_bytes(b"PK nothing")
    else:
        torch.save(stored, bare.folder / "speakers_xtts.pth")
    with pytest.raises(AmharicTtsError, match="speakers_xtts"):
        own_names(bare)


def test_the_parts_that_listen_are_enough(opened: LoadedModel, tmp_path: Path, cache: Path) -> None:
    path = clip(tmp_path, "a.wav", 1.0)
    voice = voice_from(opened.conditioning_only(), [path], cache / "1")
    assert torch.equal(voice.prompt, voice_from(opened, [path], cache / "2").prompt)
