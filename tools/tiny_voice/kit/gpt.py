"""coqui's GPT without what hears the reference, with the names of its weights.

The prompt of each voice is given, so only text and codes are learnt. A sequence is prompt, text and codes, one clip
after the other without padding between them, so that attention needs no mask but that of time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from tools.tiny_voice.kit.clips import Clips
from tools.tiny_voice.kit.clock import Figures, Training, autocast

START_TEXT, STOP_TEXT = 237, 0
RATE = 8e-4  # highest learning rate
TEXT_WEIGHT = 0.01  # of the loss of the text, as in coqui's training
IGNORED = -1
JUDGED = 64  # clips that the loss is measured on
HEAD = 64  # channels of an attention head
TOGETHER = 32  # clips whose latents are computed at once

Ids = npt.NDArray[np.int64]
Codes = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Batch:
    """Clips of similar length, each row padded at its end.

    Attributes:
        prompts: Of shape (clips, 32, channels).
        tokens: Rows of the joined embeddings of text and codes.
        places: Rows of the joined position embeddings.
        text: Targets among the text tokens, or -1.
        audio: The same among the codes.
    """

    prompts: Tensor
    tokens: Tensor
    places: Tensor
    text: Tensor
    audio: Tensor


class Block(nn.Module):
    """One layer of GPT-2; its matrices are stored as (inputs, outputs)."""

    def __init__(self, weights: Mapping[str, Tensor], name: str) -> None:
        super().__init__()
        prefix = f"{name}."
        own = {key.removeprefix(prefix): weight for key, weight in weights.items() if key.startswith(prefix)}
        self.own = nn.ParameterDict(
            {key.replace(".", "/"): nn.Parameter(weight.float()) for key, weight in own.items()}
        )

    def forward(self, hidden: Tensor) -> Tensor:
        batch, size, width = hidden.shape
        projected = self._multiply(self._norm(hidden, "ln_1"), "attn/c_attn")
        heads = projected.view(batch, size, 3, width // HEAD, HEAD).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        hidden = hidden + self._multiply(attended.transpose(1, 2).reshape(batch, size, width), "attn/c_proj")
        inner = functional.gelu(self._multiply(self._norm(hidden, "ln_2"), "mlp/c_fc"), approximate="tanh")
        return hidden + self._multiply(inner, "mlp/c_proj")

    def _multiply(self, hidden: Tensor, name: str) -> Tensor:
        product: Tensor = hidden @ self.own[f"{name}/weight"] + self.own[f"{name}/bias"]
        return product

    def _norm(self, hidden: Tensor, name: str) -> Tensor:
        weight = self.own[f"{name}/weight"]
        return functional.layer_norm(hidden, weight.shape, weight, self.own[f"{name}/bias"])


class Gpt(nn.Module):
    """Text and codes in, hidden states out."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("gpt.h."))
        self.blocks = nn.ModuleList(Block(weights, f"gpt.h.{layer}") for layer in range(layers))
        rest = {name: weight for name, weight in weights.items() if not name.startswith("gpt.h.")}
        self.own = nn.ParameterDict({_key(name): nn.Parameter(weight.float()) for name, weight in rest.items()})
        self.text_tokens, self.text_places = (len(rest[name]) for name in ("text_embedding.weight", TEXT_PLACES))
        self.start_code = len(rest["mel_embedding.weight"]) - 2

    def forward(self, batch: Batch) -> Tensor:
        """Return the normalised states after the prompts."""
        tokens = torch.cat([self.own["text_embedding/weight"], self.own["mel_embedding/weight"]])
        places = torch.cat([self.own[_key(TEXT_PLACES)], self.own[_key(CODE_PLACES)]])
        inputs = functional.embedding(batch.tokens, tokens) + functional.embedding(batch.places, places)
        hidden = torch.cat([batch.prompts, inputs], dim=1)
        for block in self.blocks:
            hidden = block(hidden)
        for name in ("gpt/ln_f", "final_norm"):
            weight = self.own[f"{name}/weight"]
            hidden = functional.layer_norm(hidden, weight.shape, weight, self.own[f"{name}/bias"])
        return hidden[:, batch.prompts.shape[1] :]

    def losses(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the losses of text and codes."""
        hidden = self(batch)
        pairs = ("text_head", batch.text), ("mel_head", batch.audio)
        text, audio = (
            functional.cross_entropy(
                functional.linear(hidden, self.own[f"{name}/weight"], self.own[f"{name}/bias"]).mT.float(),
                targets,
                ignore_index=IGNORED,
            )
            for name, targets in pairs
        )
        return text, audio

    def batch(self, texts: Sequence[Sequence[int]], codes: Sequence[Codes], prompts: Tensor) -> Batch:
        """Join texts and codes of some clips."""
        rows = [self._row(text, code) for text, code in zip(texts, codes, strict=True)]
        size = max(row.shape[1] for row in rows)
        padded = np.stack([np.pad(row, ((0, 0), (0, size - row.shape[1])), constant_values=IGNORED) for row in rows])
        tokens, places, text, audio = torch.from_numpy(padded).to(prompts.device).unbind(1)
        return Batch(prompts, tokens.clamp(min=0), places.clamp(min=0), text, audio)

    def _row(self, text: Sequence[int], codes: Codes) -> Ids:
        """Return tokens, places, and targets of text and of codes."""
        words = np.array([START_TEXT, *text, STOP_TEXT])
        sounds = np.concatenate([[self.start_code], codes])
        tokens = np.concatenate([words, sounds + self.text_tokens])
        places = np.concatenate([np.arange(len(words)), np.arange(len(sounds)) + self.text_places])
        nothing = np.full(len(tokens), IGNORED)
        of_text, of_codes = nothing, nothing.copy()
        of_text[: len(words) - 1] = words[1:]
        of_codes[len(words) :] = [*codes, self.start_code + 1]
        return np.stack([tokens, places, of_text, of_codes]).astype(np.int64)


TEXT_PLACES, CODE_PLACES = "text_pos_embedding.emb.weight", "mel_pos_embedding.emb.weight"


def _key(name: str) -> str:
    return name.replace(".", "/")


def named_weights(gpt: Gpt) -> dict[str, Tensor]:
    """Return the weights under coqui's names."""
    found = {name.replace("/", "."): weight for name, weight in gpt.own.items()}
    for number, block in enumerate(cast("list[Block]", gpt.blocks)):
        found |= {f"gpt.h.{number}.{name.replace('/', '.')}": weight for name, weight in block.own.items()}
    return {name: weight.detach() for name, weight in found.items()}


class Lesson:
    """What one update of the GPT is.

    Args:
        gpt: The GPT.
        clips: What it learns from.
        prompts: Of shape (voices, references, 32, channels).
        size: Clips of an update.
    """

    def __init__(self, gpt: Gpt, clips: Clips, prompts: Tensor, size: int) -> None:
        self.gpt, self.clips, self.prompts, self.size = gpt, clips, prompts, size
        known = clips.select()
        self.order = known[np.argsort(np.diff(clips.first)[known], kind="stable")]

    def step(self, _: float, random: np.random.Generator) -> Iterator[tuple[str, Tensor]]:
        begin = int(random.integers(0, max(1, len(self.order) - self.size)))
        batch = self.batch(self.order[begin : begin + self.size], random)
        with autocast(batch.prompts.device):
            text, audio = self.gpt.losses(batch)
        yield "gpt", audio + TEXT_WEIGHT * text

    @torch.no_grad()
    def measure(self, gpt: nn.Module) -> Figures:
        """Measure the loss on clips that are never learnt from."""
        text, audio = cast("Gpt", gpt).losses(self._unseen())
        return {"unseen": round(float(audio), 4), "unseen_text": round(float(text), 4)}

    @torch.no_grad()
    def save(self, gpt: Gpt, path: Path) -> None:
        """Write the weights in half precision, with scores whose highest one is 0 on average.

        The repetition penalty divides scores above zero and multiplies those below. It must spare codes that do repeat.
        """
        weights, batch = named_weights(gpt), self._unseen()
        scores = gpt(batch)[batch.audio >= 0] @ weights["mel_head.weight"].T + weights["mel_head.bias"]
        weights["mel_head.bias"] = weights["mel_head.bias"] - scores.amax(1).mean()
        torch.save({name: weight.cpu().half() for name, weight in weights.items()}, path)

    def _unseen(self) -> Batch:
        return self.batch(self.clips.select(unseen=True)[:JUDGED], np.random.default_rng(0))

    def batch(self, numbers: Ids, random: np.random.Generator) -> Batch:
        """Join clips, each with one of the prompts of its voice."""
        takes = [self.clips.takes[number] for number in numbers]
        drawn = random.integers(0, self.prompts.shape[1], len(takes))
        prompts = self.prompts[[take.speaker for take in takes], drawn].float()
        return self.gpt.batch(
            [take.ids for take in takes], [self.clips.codes_of(number) for number in numbers], prompts
        )


def train(lesson: Lesson, training: Training, path: Path) -> Gpt:
    """Train for a time; with none, the GPT stays as it was. What there is by then is written at every save."""

    def measure(module: nn.Module) -> Figures:
        lesson.save(cast("Gpt", module), path)
        return lesson.measure(module)

    trained = cast("Gpt", training.run(lesson.step, measure))
    lesson.save(trained, path)
    return trained


@torch.no_grad()
def latents(gpt: Gpt, clips: Clips, prompts: Tensor) -> npt.NDArray[np.float16]:
    """Return one latent for each code of all clips: the state that predicts it."""
    found = np.zeros((len(clips.codes), prompts.shape[-1]), np.float16)
    lesson, random = Lesson(gpt, clips, prompts, TOGETHER), np.random.default_rng(0)
    order = np.argsort(np.diff(clips.first), kind="stable")
    for begin in range(0, len(order), TOGETHER):
        numbers = order[begin : begin + TOGETHER]
        hidden = gpt(lesson.batch(numbers, random)).half().cpu().numpy()
        for row, number in enumerate(numbers):
            before = len(clips.takes[number].ids) + 2
            first, last = clips.first[number : number + 2]
            found[first:last] = hidden[row, before : before + last - first]
    return found
