"""From sound to codes, with the weights of coqui's DiscreteVAE: the same codes as ``utils.xtts.codec`` gives."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

WINDOW, HOP, CODE = 1024, 256, 1024
RESIDUAL = "encoder.{}.net.{}"


class Codec:
    """The encoder.

    Args:
        weights: Of the DVAE, with the filters (``filters``) and divisors (``stats``) of the mel bands.
    """

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        self.weights = {name: weight.float() for name, weight in weights.items()}
        self.residual = sorted({int(name.split(".")[1]) for name in weights if ".net." in name})
        self.codebook = self.weights["codebook.embed"]

    @torch.inference_mode()
    def encode(self, sound: npt.NDArray[np.float32]) -> npt.NDArray[np.int16]:
        """Return one code for every 1024 samples."""
        hidden = self._mel(torch.from_numpy(sound))[None]
        for layer in range(self.residual[0]):
            hidden = self._convolve(f"encoder.{layer}.0", hidden, stride=2).relu()
        for layer in self.residual:
            inner = self._convolve(RESIDUAL.format(layer, 0), hidden).relu()
            inner = self._convolve(RESIDUAL.format(layer, 2), inner).relu()
            hidden = hidden + self._convolve(RESIDUAL.format(layer, 4), inner)
        found = self._convolve(f"encoder.{self.residual[-1] + 1}", hidden)[0].T
        distances = self.codebook.square().sum(0) - 2 * found @ self.codebook
        codes: npt.NDArray[np.int16] = distances.argmin(1)[: len(sound) // CODE].to(torch.int16).numpy()
        return codes

    def _mel(self, sound: Tensor) -> Tensor:
        spectrum = torch.stft(sound, WINDOW, HOP, window=torch.hann_window(WINDOW), return_complex=True)
        bands = self.weights["filters"].T @ spectrum.abs().square()
        return bands.clamp(min=1e-5).log() / self.weights["stats"][:, None]

    def _convolve(self, name: str, hidden: Tensor, stride: int = 1) -> Tensor:
        weight = self.weights[f"{name}.weight"]
        return functional.conv1d(hidden, weight, self.weights[f"{name}.bias"], stride, padding=weight.shape[2] // 2)
