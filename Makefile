# Every target makes the virtual environment first, so a fresh clone needs nothing by hand.
PYTHON ?= python3
PY := .venv/bin/python
SEED ?=
FLOWS := $(addprefix tests/spark/,test_flows.py test_lanes.py test_flows_tutorial.py)
# Without compiled modules every start of a broker would compile them anew.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(PY) -m pip install --disable-pip-version-check

.PHONY: help setup spark up test tools bench conformance secured kerberos quotas access recordings judge judge-connect judge-lanes judge-sql simulate simulate-cluster fuzz crash chaos chaos-spark chaos-streams chaos-flows chaos-connect bench-connect thirty-connectors fifty-flows lint docs pictures clean flows-elsewhere fifty-queries sql-on-spark two-servers judge-cdc connect-on-spark

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

up: .venv/.platform  ## run the platform: broker 9092, registry 8081, REST Proxy 8082, Connect 8083, console 9021; BROKERS=3 runs a cluster
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

conformance: setup  ## the slow suites: librdkafka, franz-go, Kafka's own tools, on one broker and on three; clusters with Kafka, and the balancer on them; console and Spark on Kafka; Spark on a cluster; the order services
	$(PY) -m tests.conformance
	$(PY) -m tests.conformance --brokers 3
	$(PY) -m pytest -q tests/conformance/ksqldb_compiled.py
	$(PY) -m tests.cluster.formatted
	$(PY) -m tests.conformance.cluster
	$(PY) -m tests.conformance.balancing
	$(PY) -m tests.console.browser
	$(PY) -m tests.spark.brokers
	$(PY) -m tests.spark.cluster
	$(PY) -m tests.examples.orders_run
	$(PY) -m tests.connect.brokers
	$(PY) -m tests.connect.takeover
	$(PY) -m tests.connect.plugin.real

secured: setup  ## the whole of a secured platform: all parts, a browser, Java's tools, Spark, three brokers, testssl.sh; librdkafka and franz-go over SSL and SASL_SSL, beside Apache Kafka
	$(PY) -m pytest -q -s tests/secured_whole.py
	$(PY) -m tests.conformance.security

kerberos: setup  ## Kerberos with a real KDC: aiokafka and Java's tools on our broker, our client on Apache Kafka, clusters
	$(PY) -m pytest -q tests/broker/authentication/test_kerberos.py tests/kerberos_whole.py

quotas: setup  ## all kinds of quotas beside Apache Kafka: for how long each throttles the same traffic
	$(PY) -m tests.conformance.quotas

access: setup  ## every API in every version under 45 sets of ACLs, beside what Apache Kafka answered
	ACCESS=all $(PY) -m pytest -q tests/conformance/test_access.py

recordings: setup  ## ask an Apache Kafka again what make test compares our answers with
	$(PY) -m tests.conformance.differential --record
	$(PY) -m tests.conformance.access.record

judge: setup    ## Kafka Streams and ours on the same random input; writes docs/streams-judge.md
	$(PY) -m tests.streams.judge --page
	$(PY) -m tests.streams.judge.live --page

judge-sql: setup  ## numbers, decimals, times and regular expressions of SQL and those of the JDK on the same random input
	$(PY) -m tests.sql.judge

judge-lanes: setup  ## the topologies of the third judge together in lanes, beside Kafka Streams
	$(PY) -m tests.streams.judge.lanes

judge-cdc: setup  ## changes of PostgreSQL, MariaDB and MySQL as Debezium captures them and as we do, record by record; its jars and Iceberg's in our workers
	$(PY) -m tests.connect.debezium
	$(PY) -m tests.connect.debezium.hosted
	$(PY) -m tests.connect.lake.hosted

judge-connect: setup  ## Connect's transforms, predicates and converters and ours on the same random records; random requests to both workers
	$(PY) -m tests.connect.judge
	$(PY) -m tests.connect.judge.rest

simulate: setup  ## ten thousand seeds of the simulator, or one: make simulate SEED=n
	$(PY) -m tests.simulation $(SEED)

simulate-cluster: setup  ## ten thousand seeds of the simulator of clusters, or one: make simulate-cluster SEED=n; FOCUS=name adds faults that seldom come together
	$(PY) -m tests.cluster.simulation $(SEED) $(if $(FOCUS),--focus $(FOCUS))

fuzz: setup     ## the tests with drawn examples, with examples that were never drawn before
	$(PY) -m pytest -n 2 --hypothesis-profile new $$(grep -rlE '^from hypothesis' tests --include='test_*.py' --exclude-dir=spark)

.PHONY: fuzz-sql
fuzz-sql: setup  ## a hundred thousand statements, made by the grammar and broken: each is executed or refused
	$(PY) -m tests.sql.fuzz 100000 $(SEED)

.PHONY: storm
storm: setup    ## ten thousand TLS connections at once, again, and as many that stop half-way
	$(PY) -m tests.storm $(COUNT)

.PHONY: fuzz-gate
fuzz-gate: setup  ## ten million damaged logins, tokens, JAAS lines, rules and stores: all are refused
	$(PY) -m tests.broker.authentication.fuzz 10000000 $(SEED)

crash: setup    ## kill -9 under load, a hundred times
	$(PY) -m tests.crash

chaos: setup    ## faults on real nodes under load (kill -9, SIGSTOP, cuts, slow links, restarts): a thousand on three of Moldau, a hundred on mixed clusters
	$(PY) -m tests.cluster.chaos --java $(if $(SEED),--seed $(SEED))
	$(PY) -m tests.cluster.chaos --java --mixed mmk $(if $(SEED),--seed $(SEED))
	$(PY) -m tests.cluster.chaos --java --mixed mkk $(if $(SEED),--seed $(SEED))

chaos-spark: setup  ## kill -9 under the Spark sink: its tasks and drivers alone, then a whole query
	$(PY) -m tests.spark.chaos_tasks --page docs/spark-chaos.md
	$(PY) -m tests.spark.chaos --page docs/spark-chaos.md

chaos-streams: setup  ## kill -9 under a streams application: workers, driver, checkpoint, broker
	$(PY) -m tests.spark.chaos_streams --page docs/streams-chaos.md

chaos-flows: setup  ## kill -9 under deployed flows: Python workers, workers, checkpoints, broker
	$(PY) -m tests.spark.chaos_flows --page docs/flows-chaos.md

chaos-connect: setup  ## kill -9 of workers, JVMs, executors, drivers, broker and database under connectors: 200 times, and 15 for each CDC
	$(PY) -m tests.connect.chaos --page docs/connect/chaos.md $(if $(SEED),--seed $(SEED))
	$(PY) -m tests.connect.chaos_cdc --page docs/connect/chaos-cdc.md $(if $(SEED),--seed $(SEED))

thirty-connectors: setup  ## three workers with thirty connectors, each worker killed in turn: all run again within 12 s
	$(PY) -m tests.connect.thirty

connect-on-spark: setup  ## connectors in executors of a standalone Spark master, of which some are killed, and the driver
	$(PY) -m tests.connect.spark

fifty-flows: setup  ## fifty flows under load, of which some fail, pause, come, go and change
	$(PY) -m tests.spark.fifty_flows

flows-elsewhere: setup  ## the tests of flows on Apache Kafka, and on a standalone Spark master with two workers
	$(PY) -m tests.spark.brokers --on kafka $(FLOWS)
	$(PY) -m tests.spark.brokers --on moldau --standalone $(FLOWS)

fifty-queries: setup  ## fifty SQL queries on Spark under load, of which some fail, pause, come and go
	$(PY) -m tests.spark.fifty_queries
	$(PY) -m tests.spark.fifty_queries --queries 10 --kill

two-servers: setup  ## two SQL servers of one service, killed in turn under load; queries in the servers, then on Spark
	$(PY) -m tests.sql.two_servers --runtime local
	$(PY) -m tests.sql.two_servers --runtime spark

sql-on-spark: setup  ## cases of SQL on Spark, with a kill, beside the local runtime; CASES=FILES adds more than ours
	$(PY) -m tests.spark.sql_cases $(if $(CASES),--cases 60 tests/sql/cases $(CASES),--cases 20)

bench: setup    ## ratios beside Apache Kafka and others; writes docs/benchmarks*.md
	$(PY) -m benchmarks.serdes
	$(PY) -m benchmarks.commands
	$(PY) -m benchmarks.platform
	$(PY) -m benchmarks.services
	$(PY) -m benchmarks.sql
	$(PY) -m benchmarks.spark
	$(PY) -m benchmarks.sql_cpu
	$(PY) -m benchmarks.sql_spark
	$(PY) -m benchmarks.streams --keys 1000000 --keys 10000000
	$(PY) -m benchmarks.flows
	$(PY) -m benchmarks
	$(PY) -m benchmarks --nodes 3

bench-connect: setup  ## a worker of Connect beside Apache's: records, latency, memory, start; changes of PostgreSQL beside Debezium; tables of lakes; dlt; writes docs/connect/benchmarks*.md
	$(PY) -m benchmarks.connect
	$(PY) -m benchmarks.cdc
	$(PY) -m benchmarks.lake
	$(PY) -m benchmarks.dlt_pipeline

docs: setup     ## the pages that are made from tables, then the site in build/site
	.venv/bin/moldau settings --markdown > docs/settings.md
	$(PY) -m moldau.cli.page > docs/cli.md
	$(PY) -m moldau.cli.kafka.page > docs/kafka-tools.md
	$(PY) -m moldau.cli.metrics_page > docs/metrics.md
	$(PY) -m tests.conformance.differential.page
	$(PY) -m moldau.spark.page > docs/spark-options.md
	$(PY) -m moldau.sql.functions.page > docs/sql-functions.md
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

pictures: setup  ## pictures of the console for the docs, taken of the demo in Chromium
	$(PY) -m tests.console.browser.pictures

clean:
	rm -rf .venv .pytest_cache .hypothesis .ruff_cache build dist
