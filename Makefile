# Every target makes the virtual environment first, so a fresh clone needs nothing by hand.
PYTHON ?= python3
PY := .venv/bin/python
SEED ?=
# Without compiled modules every start of a broker would compile them anew.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(PY) -m pip install --disable-pip-version-check

.PHONY: help setup spark up test tools bench conformance recordings judge simulate simulate-cluster fuzz crash chaos-spark chaos-streams lint docs pictures clean

help:           ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.done  ## make .venv with everything in it

spark: .venv/.spark  ## add Spark to .venv, for streams applications

# What .venv holds: the platform; Spark with it; what tests, benchmarks and docs need. A change here installs it again.
.venv/.platform: pyproject.toml
	$(call install,console,the platform (130 MB to download))
.venv/.spark: pyproject.toml
	$(call install,all,the platform and Spark (650 MB to download))
.venv/.done: pyproject.toml
	$(call install,dev,everything for development (900 MB to download))
	@touch .venv/.platform .venv/.spark

# uv takes seconds where pip takes minutes. It is the one on PATH, or a wheel; pip does the work where uv cannot.
define install
@test -x $(PY) || uv venv --quiet --seed --no-python-downloads --python $(PYTHON) .venv 2>/dev/null || $(PYTHON) -m venv .venv
@echo "Installing $(2) into .venv."
@uv=uv; $$uv --version >/dev/null 2>&1 || { uv=.venv/bin/uv; $(PIP) --quiet uv; }; \
	$$uv pip install --python $(PY) -e '.[$(1)]' || \
	{ echo "uv cannot install it; pip does, and takes some minutes."; $(PIP) -e '.[$(1)]'; }
@touch $@
endef

up: .venv/.platform  ## run the platform: broker 9092, registry 8081, REST Proxy 8082, console 9021; BROKERS=3 runs a cluster
	@echo "Starting the platform."
	@.venv/bin/moldau up $(if $(BROKERS),--brokers $(BROKERS))

test: setup     ## lint, then all tests
	$(MAKE) --no-print-directory -j3 lint tools compiled
	$(PY) -m pytest -n 5 --durations 15  # they wait as much as they compute; tests/scheduling.py deals them out

tools: setup    ## fetch and build the outside tools that tests need, as far as they can be had
	$(PY) -m tests.needs

# pytest compiles what it collects: once here, or else in each of its processes at the same time. What it has to say
# against the tests it says again in the run itself.
.PHONY: compiled
compiled: setup
	@$(PY) -m pytest --collect-only --quiet >/dev/null 2>&1 || true

lint: setup     ## ruff and pyright
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m pyright

conformance: setup  ## the slow suites: librdkafka, franz-go, Kafka's own tools; clusters with Kafka, and the balancer on them; console and Spark on Kafka; Spark on a cluster; the order services
	$(PY) -m tests.conformance
	$(PY) -m tests.cluster.formatted
	$(PY) -m tests.conformance.cluster
	$(PY) -m tests.conformance.balancing
	$(PY) -m tests.console.browser
	$(PY) -m tests.spark.brokers
	$(PY) -m tests.spark.cluster
	$(PY) -m tests.examples.orders_run

recordings: setup  ## ask an Apache Kafka again what make test compares our answers with
	$(PY) -m tests.conformance.differential --record

judge: setup    ## Kafka Streams and ours on the same random input; writes docs/streams-judge.md
	$(PY) -m tests.streams.judge --page
	$(PY) -m tests.streams.judge.live --page

simulate: setup  ## ten thousand seeds of the simulator, or one: make simulate SEED=n
	$(PY) -m tests.simulation $(SEED)

simulate-cluster: setup  ## two thousand seeds of the simulator of clusters, or one: make simulate-cluster SEED=n
	$(PY) -m tests.cluster.simulation $(SEED)

fuzz: setup     ## the tests with drawn examples, with examples that were never drawn before
	$(PY) -m pytest -n 2 --hypothesis-profile new $$(grep -rlE '^from hypothesis' tests --include='test_*.py' --exclude-dir=spark)

crash: setup    ## kill -9 under load, a hundred times
	$(PY) -m tests.crash

chaos-spark: setup  ## kill -9 under the Spark sink: its tasks and drivers alone, then a whole query
	$(PY) -m tests.spark.chaos_tasks --page docs/spark-chaos.md
	$(PY) -m tests.spark.chaos --page docs/spark-chaos.md

chaos-streams: setup  ## kill -9 under a streams application: workers, driver, checkpoint, broker
	$(PY) -m tests.spark.chaos_streams --page docs/streams-chaos.md

bench: setup    ## ratios beside Apache Kafka and others; writes docs/benchmarks*.md
	$(PY) -m benchmarks.serdes
	$(PY) -m benchmarks.commands
	$(PY) -m benchmarks.platform
	$(PY) -m benchmarks.services
	$(PY) -m benchmarks.spark
	$(PY) -m benchmarks.streams --keys 1000000 --keys 10000000
	$(PY) -m benchmarks

docs: setup     ## the pages that are made from tables, then the site in build/site
	.venv/bin/moldau settings --markdown > docs/settings.md
	$(PY) -m moldau.cli.page > docs/cli.md
	$(PY) -m moldau.cli.kafka.page > docs/kafka-tools.md
	$(PY) -m tests.conformance.differential.page
	$(PY) -m moldau.spark.page > docs/spark-options.md
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

pictures: setup  ## pictures of the console for the docs, taken of the demo in Chromium
	$(PY) -m tests.console.browser.pictures

clean:
	rm -rf .venv .pytest_cache .hypothesis .ruff_cache build dist
