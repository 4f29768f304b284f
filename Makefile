# Every target makes .venv first, where it is missing or older than what it is made from.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

bin := .venv/bin
installed := .venv/.installed
chapters := $(sort $(wildcard book/*.ipynb))

# Where jupyter-book looks for the outputs of chapters; it knows neither WIDEBNN_SCALE nor the package's code.
cached := _build/.jupyter_cache

untyped = $(bin)/python -m pytest -n auto --dist worksteal
suite = $(untyped) --jaxtyping-packages=widebnn,beartype.beartype

# What it says is of interest where it fails.
jupyter_book = $(bin)/jupyter-book build . $(1) > _build/pages.log 2>&1 || { cat _build/pages.log; exit 1; }

# The page of a tour; without a display there is nothing to open it in.
tour := $(wildcard book/$(or $(CHAPTER),00)-*.ipynb)
page := _build/tour/_build/html/$(tour:.ipynb=.html)
has_display := [ -n "$${DISPLAY:-}$${WAYLAND_DISPLAY:-}" ] || [ "$$(uname)" = Darwin ]

# The same pages on every machine: left alone, the scale would follow the device.
export WIDEBNN_SCALE ?= smoke

# Python keeps its bytecode, which some machines tell it not to: without, every import takes 5 to 10 s.
unexport PYTHONDONTWRITEBYTECODE

# Progress bars are for readers who wait, not for pages and logs.
export TQDM_DISABLE := 1

.PHONY: help setup lint check test tour book browser nightly colab bench times dist lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

setup: $(installed) ## Make .venv with the package and everything in requirements.txt

.venv/bin/python:
	@.ci/install python

$(installed): requirements.txt pyproject.toml | .venv/bin/python
	@.ci/install packages

lint: $(installed) ## Lint and type-check
	@echo 'Checking style and types, in about half a minute:'
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(bin)/pyright --pythonpath $(bin)/python

check test: export WIDEBNN_SCALE := smoke
check test: export NPROC := 1  # one XLA thread for each worker

check: lint ## Lint, type-check and run the fast tests
	@echo 'Running the fast tests; a line of dots ends with the share that is done:'
	$(suite) tests

test: lint ## Lint, type-check, run the test suite and every chapter at smoke scale
	@echo 'Running the tests; a line of dots ends with the share that is done:'
	$(suite) -m "not nightly" tests
	@rm -rf _build/executed
	@$(bin)/python -m book.executed $(cached) $(chapters)

book: $(installed) ## Build the book into _build/html, from chapters run since they changed; a warning is an error
	@echo 'Running the chapters that have changed, two at a time, then building the pages: $(words $(chapters)) chapters take'
	@echo 'some ten minutes. A line names each chapter when it ends.'
	@rm -rf _build/html $(cached)
	@$(bin)/python -m book.executed $(cached) $(chapters)
	@echo 'Building the pages, in one to two minutes.'
	@$(call jupyter_book,-q -W -n --keep-going --all)
	@# The page that leads to the first one: without an icon a browser asks for one that is not there.
	@echo '<link rel="icon" href="_static/favicon.svg">' >> _build/html/index.html
	@echo 'The book begins at _build/html/index.html'

tour: $(installed) ## Run a chapter and open its page (another: CHAPTER=05)
	@echo 'Running $(tour), then building its page: about a minute.'
	@rm -rf _build/tour && mkdir -p _build/tour
	@$(bin)/python -m book.executed _build/tour/_build/.jupyter_cache $(tour)
	@printf 'format: jb-article\nroot: %s\n' $(tour:.ipynb=) > _build/tour/_toc.yml
	@# Its links to other chapters lead nowhere yet, of which Sphinx need not warn.
	@echo 'Building its page.'
	@$(call jupyter_book,-qq --toc _build/tour/_toc.yml --path-output _build/tour)
	@echo 'The page is $(page)'
	@echo 'Next: another chapter, make tour CHAPTER=01; all of them, make book; your own data, make tour CHAPTER=your-data.'
	@if $(has_display); then $(bin)/python -m webbrowser '$(CURDIR)/$(page)'; fi

browser: $(installed) ## Test the built book in Chromium
	$(bin)/python -m pytest -n 4 tests/browser  # a browser waits more than it computes

nightly: $(installed) ## Run the tests that take minutes
	$(suite) -m nightly --ignore tests/test_scikit_learn.py tests
	@# An estimator must take any option until it is fitted, of any type.
	$(untyped) -m nightly tests/test_scikit_learn.py

colab: $(installed) ## Run chapters as Colab opens them (some: CHAPTER='01- or 02-')
	$(bin)/python -m pytest -n 2 tests/colab $(if $(CHAPTER),-k '$(CHAPTER)')

bench: $(installed) ## Time the package against its peers, into _build/bench.json
	$(bin)/python -m benchmarks

times: $(installed) ## Measure chapters at WIDEBNN_SCALE and write their run times (one: CHAPTER=05)
	$(bin)/python book/measure_run_times.py $(or $(CHAPTER:%=book/%-*.ipynb),$(wildcard book/[0-9]*.ipynb))

dist: $(installed) ## Build the wheel and the sdist into dist, and try the wheel in an empty environment
	rm -rf dist
	$(bin)/python -m hatchling build -d dist
	$(bin)/python -m venv --clear _build/empty
	_build/empty/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd _build && empty/bin/python -I -W error -c "import widebnn as wb; wb.vi, wb.plots, wb.results('over_width'); wb.print_versions()"

lock: $(installed) ## Resolve pyproject.toml anew into requirements.txt (needs uv)
	@command -v uv > /dev/null || { echo "make lock: install uv first (pip install uv)" >&2; exit 1; }
	uv pip compile --quiet --no-header --no-annotate --universal --python-version 3.12 \
	  --override <(printf '%s ; sys_platform == "none"\n' tensorflow tf2jax) \
	  --extra nngp --extra cluster --extra book --extra test pyproject.toml -o requirements.txt
	grep -v "sys_platform == 'none'" requirements.txt > requirements.txt.new && mv requirements.txt.new requirements.txt

clean: ## Remove what was built; the environment stays
	rm -rf _build dist .pytest_cache .ruff_cache
