# The same on Windows: run the commands behind the tabs with .venv\Scripts\python.exe instead of $(PY).
PY = .venv/bin/python

.PHONY: check quick coverage lint format test test-slow test-gpu bench bench-toy bench-pages docs

check: lint coverage    ## everything, three quarters of an hour
	$(PY) -m pytest -n 0 -m "alone and not gpu and not network"

quick: lint test        ## everything that has to be green before a commit

lint:
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

coverage:       ## all tests that do not measure time, with the lines of utils/ that they and their children run
	$(PY) -m pytest --cov --cov-report= -m "not browser and not alone and not gpu and not network"
	$(PY) -m pytest --cov --cov-report= --cov-append -n 0 -m "browser and not alone"
	$(PY) -m coverage report --skip-covered --fail-under=90

format:         ## mend what ruff can mend
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

test:           ## the fast tests
	$(PY) -m pytest

test-slow:      ## the fast, slow and browser tests
	$(PY) -m pytest -m "not browser and not alone and not gpu and not network"
	$(PY) -m pytest -n 0 -m "(browser or alone) and not gpu and not network"

test-gpu:       ## on a machine with a CUDA device
	$(PY) -m pytest -n 0 -m gpu

bench:          ## every benchmark of this computer's processor; see benchmarks/README.md
	$(PY) -m benchmarks

bench-toy:      ## the same in tiny: shows that all work
	$(PY) -m benchmarks --toy

bench-pages:    ## the newest results into README, benchmarks/README.md and the plots
	$(PY) -m benchmarks.render

docs:           ## docs/API.md, made from the code
	$(PY) docs/make_api.py
