"""One dataset for all whole runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.training.trainable import write_dataset


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one dataset, whose features the first run encodes for all of them."""
    return write_dataset(tmp_path_factory.mktemp("shared") / "dataset")


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Compute small models on one core: threads that wait for each other take longer than the work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
