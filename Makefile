# make demo    a first run: ping-pong under four coalescing strategies, as a table
# make test    the test suite (make test TESTS=tests/unit for a part of it)
# make nightly the tests that repeat others at length (make nightly PART=0/7 for a seventh)
# make schedules  small clusters under drawn orders of steps, with deaths (SEEDS=1-1000)
# make seeds   small simulated runs, each drawn from a seed and checked (SEEDS=1-1000)
# make chaos   random runs whose processes are killed, stopped and throttled (MINUTES=1)
# make sanitize  the unit tests and schedules over code with AddressSanitizer and UBSan
# make failing-calls  commands of which each system call fails in turn; hours
# make bench   the figures of docs/performance.md on this machine
# make lint    all style and type checks, and the documentation's site
# make docs    the documentation as a site, build/docs/html/index.html
# make clean   forget everything that was built
#
# Each works alone on a machine with Python 3.11 or newer, gcc and Python's headers.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS := $(shell nproc)
TESTS ?= tests/unit tests/integration tests/faults tests/tidy
SEEDS ?= 1-1000
MINUTES ?= 1
PART ?= 0/1

COMPILED := $(shell find shrimpmx -name '*.pyx' -o -name '*.pxd' -o -name '*.h') \
	shrimpmx/native/compiled.c \
	$(addprefix shrimpmx/mpi/,embed.c front.c constants.py functions.py prototypes.py generate.py) \
	$(addprefix shrimpmx/costs/,table.py generate.py)
PACKAGE := setup.cfg setup.py pyproject.toml

# Where this is set, each of the many commands that the tests start would compile all Python again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test nightly schedules seeds chaos sanitize failing-calls bench lint docs clean

demo: $(VENV)/built
	$(BIN)/shrimpmx run scenarios/smoke/pingpong.py

# Tests that keep to one process run beside each other, one on each CPU. Those of real processes
# mostly wait, and place these on the same CPUs: three at a time.
BESIDE := $(filter tests/unit% tests/tidy%,$(TESTS))
REAL := $(filter-out $(BESIDE),$(TESTS))

test: $(VENV)/built $(VENV)/tools
	$(if $(BESIDE),$(BIN)/python -m pytest --numprocesses auto --dist loadfile $(BESIDE))
	$(if $(REAL),$(BIN)/python -m pytest --numprocesses 3 --dist loadfile $(REAL))

nightly: $(VENV)/built $(VENV)/tools
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --nightly $(PART)

schedules: $(VENV)/built
	$(BIN)/python tools/schedules.py --seeds $(SEEDS)

seeds: $(VENV)/built $(VENV)/tools
	$(BIN)/python tools/seeds.py --seeds $(SEEDS)

chaos: $(VENV)/built $(VENV)/tools
	$(BIN)/python tools/chaos.py --minutes $(MINUTES)

sanitize: $(VENV)/built $(VENV)/tools
	$(BIN)/python tools/sanitizers.py
	$(BIN)/python tools/schedules.py --sanitize --seeds $(SEEDS)

failing-calls: $(VENV)/built $(VENV)/tools
	$(BIN)/python tools/failing_calls.py

bench: $(VENV)/built
	$(BIN)/shrimpmx bench
	$(BIN)/python tools/floors.py

# Its tests have each checker's command.
lint: $(VENV)/built $(VENV)/tools
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile tests/lint
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

docs: $(VENV)/built $(VENV)/tools
	$(BIN)/python -m sphinx -M html docs build/docs -c docs/site \
		--fresh-env --fail-on-warning --keep-going --quiet
	$(BIN)/shrimpmx report results-archive --output build/docs/html/published.html
	@echo "the site begins at build/docs/html/index.html"

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find shrimpmx -name '*.so' -delete
	rm -rf $(addprefix shrimpmx/mpi/,lib include table.h table.pxd names.h persistent.h calls.h \
	  standard_aliases.h standard_calls.h standard_numbers.h traced.h tool_variables.h)
	rm -f shrimpmx/native/stamp.h $(addprefix shrimpmx/costs/,rows.h rows.pxd)
	find . -name __pycache__ -type d -prune -exec rm -r {} +

# What pyproject.toml names as needed to build.
$(VENV)/builders: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet 'setuptools>=68' wheel 'Cython>=3.2.1' 'numpy>=2'
	touch $@

# The compiled modules, in place. What has not changed is not compiled again.
$(VENV)/compiled: $(VENV)/builders $(COMPILED) setup.py
	@echo "compiling the modules that changed; all of them, the first time, take 2 to 4 minutes on two CPUs"
	$(BIN)/python setup.py --quiet build_ext --inplace --parallel $(JOBS)
	touch $@

# The package itself: its dependencies, the command, and links to the sources.
$(VENV)/installed: $(VENV)/builders $(PACKAGE)
	SHRIMPMX_BUILD=none $(BIN)/python -m pip install --quiet --no-build-isolation -e .
	touch $@

$(VENV)/built: $(VENV)/compiled $(VENV)/installed
	touch $@

$(VENV)/tools: $(VENV)/installed
	SHRIMPMX_BUILD=none $(BIN)/python -m pip install --quiet --no-build-isolation -e '.[test]'
	touch $@
