"""The build of torch that is chosen for a driver and a GPU, what is installed, and what the doctor says about it."""

from pathlib import Path

import pytest

from utils.system import doctor, packages
from utils.system.torch_build import Gpu, choose, install, parse, supports


@pytest.mark.parametrize(
    ("system", "driver", "capability", "backend"),
    [
        ("Linux", 580, (9, 0), "cu126"),  # H100
        ("Linux", 550, (7, 5), "cu126"),  # T4 on Colab
        ("Linux", 560, (6, 0), "cu126"),  # P100 on Kaggle
        ("Linux", 525, (8, 6), "cu126"),  # RTX 3090 on an older pod
        ("Linux", 580, (6, 1), "cu126"),  # GTX 1080 with a driver for CUDA 13
        ("Linux", 580, (7, 0), "cu126"),  # V100
        ("Linux", 570, (12, 0), "cu128"),  # RTX 5090
        ("Linux", 580, (10, 0), "cu128"),  # B200
        ("Linux", 560, (12, 0), "cpu"),
        ("Linux", 470, (8, 6), "cpu"),
        ("Linux", 535, (3, 7), "cpu"),  # K80
        ("Linux", 550, None, "cu126"),
        ("Windows", 566, (8, 9), "cu126"),
        ("Windows", 576, (12, 0), "cu128"),
        ("Windows", 516, (8, 6), "cpu"),
        ("Darwin", 0, None, "pypi"),
    ],
)
def test_the_build_fits_driver_and_gpu(
    system: str, driver: int, capability: tuple[int, int] | None, backend: str
) -> None:
    gpu = Gpu(driver, capability)
    build = choose(system, gpu)
    assert build.backend == backend
    assert supports(backend, gpu, system) == backend.startswith("cu")


@pytest.mark.parametrize(("system", "backend"), [("Linux", "cpu"), ("Windows", "pypi"), ("Darwin", "pypi")])
def test_without_a_driver_nothing_for_cuda_is_downloaded(system: str, backend: str) -> None:
    assert choose(system, None).backend == backend


@pytest.mark.parametrize(
    ("answer", "gpu"),
    [
        ("550.54.15, 7.5\n", Gpu(550, (7, 5))),
        ("580.65.06, 6.1\n580.65.06, 8.9\n", Gpu(580, (8, 9))),  # the best of several
        ("470.82\n", Gpu(470)),
    ],
)
def test_what_nvidia_smi_prints_is_read(answer: str, gpu: Gpu) -> None:
    assert parse(answer) == gpu


@pytest.mark.parametrize("answer", ["", "No devices were found\n", "[N/A], [N/A]\n"])
def test_a_driver_without_a_gpu_is_an_error(answer: str) -> None:
    with pytest.raises(ValueError, match=r"invalid literal|empty"):
        parse(answer)


@pytest.fixture
def pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text('[project]\ndependencies = ["torch==2.11.0", "torchaudio==2.11.0"]\n', encoding="utf-8")
    monkeypatch.setattr(packages, "PROJECT", project)


@pytest.mark.usefixtures("pins")
@pytest.mark.parametrize(
    ("failing", "result", "commands"),
    [
        ("", "cu126", ["install", "import"]),
        ("install", "pypi", ["install"]),  # the index cannot be reached
        ("import", "pypi", ["install", "import", "uninstall"]),  # torch and torchaudio do not fit
    ],
)
def test_a_build_that_cannot_be_used_is_replaced_by_that_of_pypi(
    failing: str, result: str, commands: list[str]
) -> None:
    done: list[list[str]] = []

    def run(command: list[str]) -> bool:
        done.append(command)
        return not (failing and failing in " ".join(command))

    assert install("cu126", run) == result
    assert [
        next(name for name in ("uninstall", "install", "import") if name in " ".join(each)) for each in done
    ] == commands
    assert {"--torch-backend=cu126", "torch==2.11.0", "torchaudio==2.11.0"} <= set(done[0])


@pytest.mark.parametrize(
    ("gpu", "build", "found", "has_card", "said", "cure"),
    [
        (Gpu(550, (7, 5)), "pypi", False, True, "this build of torch (pypi) is not for driver 550", "torch_build"),
        (Gpu(580, (6, 1)), "pypi", True, True, "this build of torch (pypi)", "torch_build"),  # torch finds it in vain
        (Gpu(580, (8, 6)), "cpu", False, True, "this build of torch (cpu)", "torch_build"),
        (Gpu(470, (8, 6)), "cu126", False, True, "this driver is too old", "Update the NVIDIA driver to 525"),
        (Gpu(535, (3, 7)), "cu126", False, True, "no longer supports this GPU", "5.0 or newer"),
        (Gpu(550, (7, 5)), "cu126", False, True, "does not start CUDA", "--gpus all"),
        (None, "cpu", False, True, "driver is not installed", "sudo"),
    ],
)
def test_the_doctor_tells_a_wrong_build_from_a_missing_driver(
    gpu: Gpu | None, build: str, found: bool, has_card: bool, said: str, cure: str
) -> None:
    problem = doctor.gpu_problem(gpu, build, "Linux", found=found, has_card=has_card)
    assert problem is not None
    assert said in problem[0]
    assert cure in problem[1]


@pytest.mark.parametrize(("gpu", "found"), [(None, False), (Gpu(550, (7, 5)), True)])
def test_nothing_is_wrong_without_a_gpu_or_with_one_that_works(gpu: Gpu | None, found: bool) -> None:
    assert doctor.gpu_problem(gpu, "cu126", "Linux", found=found, has_card=found) is None
