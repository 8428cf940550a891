"""One dataset for all whole runs, and a certificate of the device that is a test's own."""

from pathlib import Path

import pytest

from tests.training.trainable import write_dataset
from utils.studio import paths


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one dataset, whose features the first run encodes for all of them."""
    return write_dataset(tmp_path_factory.mktemp("shared") / "dataset")


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that says what was tested on the device; it is not there yet."""
    path = tmp_path / "gpu-certificate.json"
    monkeypatch.setattr(paths, "GPU_CERTIFICATE", path)
    return path
