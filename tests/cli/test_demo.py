"""The demonstration: its recording, and the whole way from it to a page."""

from pathlib import Path

import pytest

from utils.cli import demo
from utils.studio import projects
from utils.studio.facts import ProjectError


def test_a_project_of_the_same_name_that_is_no_demonstration_is_left_alone(tmp_path: Path) -> None:
    own = projects.create(demo.NAME, tmp_path)
    with pytest.raises(ProjectError, match="a project of your own"):
        demo.new_project(tmp_path)
    assert own.root.is_dir()
