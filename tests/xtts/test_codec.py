"""Audio codes and reference frames: equal to coqui's, and independent of the neighbours in a batch."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.xtts.small_dvae import MEL_STATS, PUBLISHED, SMALL, babble, make_dvae, write_dvae
from utils.xtts.codec import AudioEncoder
from utils.xtts.facts import ModelFileError

pytestmark = pytest.mark.slow

LENGTHS = (1.0, 1.3, 2.31, 5.0, 5.001, 11.6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dvae(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def encoder(folder: Path) -> AudioEncoder:
    return AudioEncoder.load(folder)


@pytest.mark.parametrize(("sizes", "weights"), [(SMALL, None), (PUBLISHED, 24_251_392)], ids=["small", "published"])
def test_a_batch_gives_the_same_codes_as_single_clips(
    tmp_path: Path, sizes: tuple[int, int, int], weights: int | None
) -> None:
    encoder = AudioEncoder.load(write_dvae(tmp_path, sizes))
    assert weights in (None, sum(weight.numel() for weight in encoder.encoder.parameters()))
    clips = [babble(length, seed) for seed, length in enumerate(LENGTHS)]
    for clip, in_batch in zip(clips, encoder.encode(clips), strict=True):
        (alone,) = encoder.encode([clip])
        assert np.array_equal(alone.codes, in_batch.codes)
        assert np.array_equal(alone.mel, in_batch.mel)
        assert len(set(alone.codes.tolist())) > 5, "a test with hardly any codes would prove nothing"


@pytest.mark.parametrize("extra", range(0, 1025, 128))
def test_borders_are_right_for_every_remainder_of_the_length(encoder: AudioEncoder, extra: int) -> None:
    short, long = babble(1.0, 1)[: 20_480 + extra], babble(3.0, 2)
    assert np.array_equal(encoder.encode([long, short])[1].codes, encoder.encode([short])[0].codes)


def coqui_mel(clip: Any, fft: int) -> Any:
    """The mel that coqui's GPTTrainer makes."""
    from TTS.tts.layers.tortoise.arch_utils import TorchMelSpectrogram

    mel = TorchMelSpectrogram(filter_length=fft, mel_norm_file=None)
    mel.mel_norms = MEL_STATS
    return mel(torch.from_numpy(np.atleast_2d(clip)))


@pytest.mark.parametrize("seconds", LENGTHS)
def test_codes_and_frames_are_those_of_coqui(encoder: AudioEncoder, seconds: float) -> None:
    clip = babble(seconds, 7)
    (ours,) = encoder.encode([clip])
    codes = make_dvae(SMALL).get_codebook_indices(coqui_mel(clip, 1024))[0]
    assert ours.codes.tolist() == codes.tolist()
    frames = coqui_mel(clip, 2048)[0].T.numpy()
    assert ours.mel.shape == frames.shape == (1 + clip.size // 256, 80)
    assert np.abs(ours.mel - frames).max() < 0.005  # half precision of numbers up to 11.5


def test_the_fingerprint_follows_only_the_weights(folder: Path, tmp_path: Path) -> None:
    first = AudioEncoder.load(folder).fingerprint
    weights = torch.load(folder / "dvae.pth", weights_only=True)
    write_dvae(tmp_path)
    torch.save(dict(reversed(weights.items())), tmp_path / "dvae.pth")
    assert AudioEncoder.load(tmp_path).fingerprint == first
    torch.save(MEL_STATS * 1.001, tmp_path / "mel_stats.pth")
    assert AudioEncoder.load(tmp_path).fingerprint != first
    assert AudioEncoder.load(write_dvae(tmp_path, seed=1)).fingerprint != first


@pytest.mark.parametrize(
    ("name", "content"), [("dvae.pth", {"other": torch.ones(2)}), ("mel_stats.pth", torch.ones(79))]
)
def test_a_wrong_file_is_refused(tmp_path: Path, name: str, content: object) -> None:
    torch.save(content, write_dvae(tmp_path) / name)
    with pytest.raises(ModelFileError, match=re.escape(name)):
        AudioEncoder.load(tmp_path)


@pytest.mark.gpu
def test_a_gpu_gives_the_codes_of_the_cpu(tmp_path: Path) -> None:
    write_dvae(tmp_path, PUBLISHED)
    clips = [babble(length, seed) for seed, length in enumerate(LENGTHS)]
    results = [AudioEncoder.load(tmp_path, device).encode(clips) for device in ("cpu", "cuda")]
    codes = [np.concatenate([clip.codes for clip in result]) for result in results]
    assert (codes[0] == codes[1]).mean() > 0.999
