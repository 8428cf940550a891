"""Which parts of the model a run trains: they alone have gradients, moments and an average."""

from dataclasses import dataclass
from typing import Self

from utils.config import TrainConfig
from utils.training.memory_parts import ModelShape


@dataclass(frozen=True)
class Trained:
    """What is trained, in numbers.

    Attributes:
        parameters: Trained parameters, adapters included.
        added: Parameters that adapters add to the model.
        tables: Trained parameters of the text's embedding, whose moments stay in fp32.
        first: The first layer that is trained.
        attention: Whether inputs of the attention's matrices are kept.
        between: Whether inputs of the matrices between are kept.
        conditioning: Whether the part that listens to the reference is trained.
        row: Numbers that the adapters of a layer keep for each position.
        once: Numbers that they keep besides; peft multiplies DoRA's matrices out, by way of a unit matrix.
    """

    parameters: int
    added: int
    tables: int
    first: int
    attention: bool
    between: bool
    conditioning: bool
    row: int = 0
    once: int = 0

    @classmethod
    def by(cls, shape: ModelShape, config: TrainConfig) -> Self:
        """Read it off the settings."""
        first = min(config.freeze_first_n_gpt_layers, shape.layers)
        if config.enable_lora:
            return cls._beside(shape, config, first)
        listening = 0 if config.freeze_conditioning else shape.conditioning
        parameters = shape.parameters - first * shape.layer - shape.conditioning + listening
        tables = (shape.text_rows + shape.audio_rows + shape.text_positions + shape.audio_positions) * shape.dim
        return cls(parameters, 0, tables, first, attention=True, between=True, conditioning=listening > 0)

    @classmethod
    def _beside(cls, shape: ModelShape, config: TrainConfig, first: int) -> Self:
        dim, rank, between = shape.dim, config.lora_rank, config.lora_targets == "all"
        inputs = [dim, dim, *([dim, 4 * dim] if between else [])]
        outputs = [3 * dim, dim, *([4 * dim, dim] if between else [])]
        layer = rank * (sum(inputs) + sum(outputs)) + (sum(outputs) if config.use_dora else 0)
        added = layer * shape.layers
        tables = (shape.text_rows + shape.text_positions) * dim
        rows = tables + shape.text_rows * (dim + 1)
        products = sum(width * (width + height) for width, height in zip(inputs, outputs, strict=True))
        return cls(
            parameters=added - layer * first + rows,
            added=added,
            tables=tables,
            first=first,
            attention=True,
            between=between,
            conditioning=False,
            row=rank * len(inputs) + (2 * sum(outputs) if config.use_dora else 0),
            once=products if config.use_dora else 0,
        )
