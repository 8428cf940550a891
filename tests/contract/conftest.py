"""The stored project of version 1.1, anywhere on the disk."""

import tarfile
from pathlib import Path

import pytest

ARCHIVE = Path(__file__).parents[1] / "data" / "project_1_1" / "project.tar.xz"


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of projects with ``project``, and a small model beside it in ``base``."""
    folder = tmp_path_factory.mktemp("output")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder
