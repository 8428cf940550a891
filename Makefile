# On Windows run the commands themselves, with .venv\Scripts\python.exe instead of $(PY).
PY = .venv/bin/python

.PHONY: check quick coverage readme lint format test test-slow test-gpu soak bench bench-toy docs lock

check: lint coverage readme   ## all checks and tests
	$(PY) -m pytest -n 0 -m "alone and not gpu and not network"

quick: lint test        ## checks before a commit: ruff, mypy, unit tests

lint:
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

coverage:       ## all tests that do not measure time, with line coverage
	$(PY) -m pytest --cov --cov-report= -m "not browser and not alone and not gpu and not network and not readme"
	$(PY) -m pytest --cov --cov-report= --cov-append -n 0 -m "browser and not alone"
	$(PY) -m coverage report --skip-covered --fail-under=90

readme:         ## the commands of README as written, in a fresh checkout
	$(PY) -m pytest -n 0 -m readme

format:         ## fix what ruff can fix
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

test:           ## the fast tests
	$(PY) -m pytest

test-slow:      ## fast, slow and browser tests
	$(PY) -m pytest -m "not browser and not alone and not gpu and not network and not readme"
	$(PY) -m pytest -n 0 -m "(browser or alone) and not gpu and not network"

test-gpu:       ## on a machine with a CUDA device
	$(PY) -m pytest -n 0 -m gpu

soak:           ## ten minutes of kills, full disks, clock jumps, damaged files and competing writers, with a new seed
	SOAK_ROUNDS=1 SOAK_FILES=60 SOAK_SEED=$(shell date +%s) $(PY) -m pytest -n 0 -s -m "" tests/soak

bench:          ## all CPU benchmarks; see benchmarks/README.md
	$(PY) -m benchmarks

bench-toy:      ## all benchmarks with tiny models, to see that they work
	$(PY) -m benchmarks --toy

docs:           ## generate docs/REFERENCE.md below its mark
	$(PY) docs/make_api.py

# torch's own build pins its CUDA libraries; another build needs others or none
CUDA = cuda-bindings cuda-pathfinder cuda-toolkit nvidia-cublas nvidia-cuda-cupti nvidia-cuda-nvrtc nvidia-cuda-runtime \
  nvidia-cudnn-cu13 nvidia-cufft nvidia-cufile nvidia-curand nvidia-cusolver nvidia-cusparse nvidia-cusparselt-cu13 \
  nvidia-nccl-cu13 nvidia-nvjitlink nvidia-nvshmem-cu13 nvidia-nvtx triton
LOCK = $(PY) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
  --override overrides.txt --custom-compile-command "make lock"

lock:           ## requirements.txt and tests/requirements.txt from pyproject.toml; versions stay where they can
	$(LOCK) pyproject.toml $(CUDA:%=--no-emit-package %) -o requirements.txt
	$(LOCK) --group test --constraint requirements.txt -o tests/requirements.txt
