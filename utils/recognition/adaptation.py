"""Teach the recogniser: CTC on clips with their texts, of which a share may be wrong."""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from utils.core.batching import grouped
from utils.core.facts import Progress, Report, ShouldStop, raise_if_stopped
from utils.recognition.phone_recogniser import HOP, RATE, STRIDE, PhoneRecogniser

Example = tuple[Tensor, tuple[int, ...]]  # log-mels, and the units that are spoken

BATCH_SECONDS = 28.0
RATE_AT_START = 1e-3  # of learning; it falls to nothing
DROPPED = 0.25  # share of the clips, those that fit worst, from which nothing is learnt
TRUSTING = 0.2  # share of the passes before the first are dropped
SECONDS_LEARNT = 5400.0  # of sound, counted in each pass
PASSES = (4, 40)


# Long because it is one training loop: what a pass has heard decides what the next leaves out.
def adapt(
    model: PhoneRecogniser,
    examples: Sequence[Example],
    should_stop: ShouldStop,
    report: Report,
    *,
    seed: int,
) -> PhoneRecogniser:
    """Return a copy of the recogniser that has learnt from clips.

    From each pass those are left out that fitted worst in the pass before: a wrong text fits badly as long as it has
    not been learnt by heart.
    """
    model = copy.deepcopy(model).train()
    examples = [example for example in examples if is_learnable(example)]
    if not examples:
        return model.eval()
    random = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)  # of dropout
    optimizer = torch.optim.AdamW(model.parameters(), RATE_AT_START, weight_decay=1e-2)
    seconds = sum(mels.shape[1] for mels, _ in examples) * HOP / RATE
    passes = int(min(max(SECONDS_LEARNT / seconds, PASSES[0]), PASSES[1]))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, passes)
    last = torch.zeros(len(examples))
    limit = torch.inf
    for number in range(passes):
        for batch in _batches(examples, random):
            raise_if_stopped(should_stop)
            losses = ctc_losses(model, [(mask_bands(examples[at][0], random), examples[at][1]) for at in batch])
            weights = (last[batch] <= limit).float()
            last[batch] = losses.detach()
            if weights.any():
                _step(model, optimizer, (losses * weights).sum() / weights.sum())
        schedule.step()
        report(Progress(number + 1, passes, "learn_voice"))
        if number >= TRUSTING * passes:
            limit = float(last.quantile(1 - DROPPED))
    return model.eval()


def _step(model: PhoneRecogniser, optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def ctc_losses(model: PhoneRecogniser, examples: Sequence[Example]) -> Tensor:
    """Return the loss of each example per unit."""
    mels = pad_sequence([mels.T for mels, _ in examples], batch_first=True).transpose(1, 2)
    targets = torch.cat([torch.tensor(units) for _, units in examples])
    frames = torch.tensor([-(-mels.shape[1] // STRIDE) for mels, _ in examples])
    lengths = torch.tensor([len(units) for _, units in examples])
    rows = model(mels).transpose(0, 1)
    losses = functional.ctc_loss(rows, targets, frames, lengths, reduction="none", zero_infinity=True)
    return losses / lengths


def is_learnable(example: Example) -> bool:
    """Return whether the sound is long enough for its units, with a blank between equal ones."""
    mels, units = example
    return bool(units) and mels.shape[1] // STRIDE > 1.2 * len(units)


def mask_bands(mels: Tensor, random: torch.Generator) -> Tensor:
    """Hide a few bands and a short stretch, so that the recogniser relies on none of them."""

    def draw(limit: int) -> int:
        return int(torch.randint(limit, (1,), generator=random))

    mels = mels.clone()
    for _ in range(2):
        start = draw(mels.shape[0] - 10)
        width = draw(10)
        mels[start : start + width] = 0
    start = draw(max(1, mels.shape[1] - 12))
    width = draw(12)
    mels[:, start : start + width] = 0
    return mels


def _batches(examples: Sequence[Example], random: torch.Generator) -> list[list[int]]:
    """Return all examples once, in batches of similar length, in random order."""
    sizes = torch.tensor([float(mels.shape[1]) for mels, _ in examples])
    order = (sizes * (0.9 + 0.2 * torch.rand(len(sizes), generator=random))).argsort().tolist()
    batches = list(grouped(order, lambda batch, _: float(sizes[batch].sum()) * HOP / RATE <= BATCH_SECONDS))
    return [batches[number] for number in torch.randperm(len(batches), generator=random).tolist()]
