"""One dataset for all whole runs."""

from pathlib import Path

import pytest

from tests.training.trainable import write_dataset


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one dataset, whose features the first run encodes for all of them."""
    return write_dataset(tmp_path_factory.mktemp("shared") / "dataset")
