"""How large the numbers of speech become, which a GPU computes in fp16: read off a CPU that computes in fp32."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.rehearsal import DeviceError, HalfRange
from utils.core.paths import TINY_MODEL
from utils.speech import layers
from utils.speech.synthesizer import Synthesizer, open_voice

pytestmark = pytest.mark.slow

LIMIT = 4096  # a sixteenth of the range, for louder voices and other texts


@pytest.fixture
def voice(monkeypatch: pytest.MonkeyPatch) -> Synthesizer:
    monkeypatch.setattr(layers, "can_pack", lambda _precision: False)  # a fused product hides what is before GELU
    return open_voice(str(TINY_MODEL), "cpu", "fp32")


def test_all_numbers_of_the_embedded_voice_are_far_below_the_limit_of_fp16(voice: Synthesizer) -> None:
    with HalfRange() as found:
        voice.speak("ሰላም ለሁላችሁ።")
    assert max(found.largest.values()) < LIMIT
    for where in ("layers.LayerStack.read", "layers.LayerStack.column", "hifigan.UpsamplingStage.__call__"):
        assert found.largest[where] > 0


def weight_of_the_gpt(voice: Synthesizer) -> Tensor:
    return voice.decoder.stack.layers[-1].mlp_out.weight  # type: ignore[attr-defined, no-any-return]


def weight_of_the_vocoder(voice: Synthesizer) -> Tensor:
    return voice.vocoder.network.before.weight


@pytest.mark.parametrize(
    ("weight_of", "where"),
    [(weight_of_the_gpt, "layers.PlainLinear"), (weight_of_the_vocoder, "hifigan.Convolution")],
)
def test_a_number_that_fp16_cannot_hold_is_found(
    voice: Synthesizer, weight_of: Callable[[Synthesizer], Tensor], where: str
) -> None:
    with torch.inference_mode():
        weight_of(voice).mul_(1e5)
    with HalfRange(), pytest.raises(DeviceError, match=f"range of fp16 in {where}"):
        voice.speak("ሰላም።")
