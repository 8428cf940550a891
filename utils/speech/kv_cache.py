"""Keys and values of what was said so far, for a batch whose rows began at different columns and all end at the same.

Since all rows end together, the next code goes into one column of all of them, and rows that are shorter are masked on
the left. Room is made in steps, so that a short sentence takes little.
"""

import torch
from torch import Tensor

STEP = 128  # columns of room that are added at a time
HIDDEN = -1e30  # score of a masked column; an infinite one gives NaN where a whole block of columns is masked


class Cache:
    """The cache of a batch.

    Args:
        shape: Layers, heads and size of a head.
        lengths: Columns that each row needs at once.
        room: Columns that are free behind them.
        dtype: Numbers it is kept in.
        device: Where it is kept.
    """

    def __init__(
        self, shape: tuple[int, int, int], lengths: list[int], room: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        layers, heads, size = shape
        self.end = max(lengths)
        self.starts = [self.end - length for length in lengths]
        wanted = (2, len(lengths), heads, self.end + max(1, room), size)
        self.layers = [torch.zeros(wanted, dtype=dtype, device=device) for _ in range(layers)]
        self.mask: Tensor | None = None
        self._remask()

    @property
    def capacity(self) -> int:
        """Return how many columns there are, free ones included."""
        return self.layers[0].shape[3]

    def row(self, row: int) -> list[Tensor]:
        """Return the columns of one row, of shape (2, 1, heads, columns, size) for each layer."""
        return [kept[:, row : row + 1, :, self.starts[row] : self.end] for kept in self.layers]

    def keep(self, rows: list[int]) -> None:
        """Let go of the other rows, or bring them into another order; a row may be there twice."""
        if rows == list(range(len(self.starts))):
            return
        index = torch.tensor(rows, device=self.layers[0].device)
        for number, kept in enumerate(self.layers):
            self.layers[number] = kept.index_select(1, index)
        self.starts = [self.starts[row] for row in rows]
        self._remask()

    def make_room(self) -> None:
        """Have at least one free column; columns that no row uses any more are given back."""
        if self.end < self.capacity:
            return
        unused = min(self.starts)
        for number, kept in enumerate(self.layers):
            shape = (*kept.shape[:3], self.end - unused + STEP, kept.shape[4])
            grown = torch.zeros(shape, dtype=kept.dtype, device=kept.device)
            grown[:, :, :, : self.end - unused] = kept[:, :, :, unused : self.end]
            self.layers[number] = grown
        self.starts, self.end = [start - unused for start in self.starts], self.end - unused
        self._remask()

    def _remask(self) -> None:
        """Hide the columns before the beginning of each row."""
        self.mask = self.hiding(self.capacity) if any(self.starts) else None

    def hiding(self, end: int) -> Tensor:
        """Return a mask, of shape (rows, 1, 1, capacity), that hides what lies before each row and from a column on."""
        first = self.layers[0]
        columns = torch.arange(self.capacity, device=first.device)
        starts = torch.tensor(self.starts, device=first.device)
        mask = torch.zeros(len(self.starts), self.capacity, dtype=first.dtype, device=first.device)
        mask.masked_fill_((columns < starts[:, None]) | (columns >= end), max(HIDDEN, torch.finfo(first.dtype).min / 2))
        return mask[:, None, None]
