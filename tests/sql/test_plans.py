"""The plans of queries: ids, schemas of steps and topologies, compared with a record of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from moldau.sql.cases import Case, NotCases
from moldau.sql.cases.plans import differences, read_plans

CASE = Case(
    "file",
    "name",
    (
        "CREATE STREAM s (k INT KEY, v STRING) WITH (kafka_topic='s', value_format='JSON');",
        "CREATE TABLE t AS SELECT v, COUNT(*) AS n FROM s GROUP BY v;",
    ),
)
TOPOLOGY = """Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [s])
      --> KSTREAM-PROCESSVALUES-0000000001
    Processor: KSTREAM-PROCESSVALUES-0000000001 (stores: [])
      --> Aggregate-Prepare, KSTREAM-PEEK-0000000002
      <-- KSTREAM-SOURCE-0000000000
    Processor: Aggregate-Prepare (stores: [])
      --> KSTREAM-FILTER-0000000003
      <-- KSTREAM-PROCESSVALUES-0000000001
    Processor: KSTREAM-FILTER-0000000003 (stores: [])
      --> Aggregate-GroupBy
      <-- Aggregate-Prepare
    Processor: Aggregate-GroupBy (stores: [])
      --> Aggregate-GroupBy-repartition-filter
      <-- KSTREAM-FILTER-0000000003
    Processor: Aggregate-GroupBy-repartition-filter (stores: [])
      --> Aggregate-GroupBy-repartition-sink
      <-- Aggregate-GroupBy
    Sink: Aggregate-GroupBy-repartition-sink (topic: Aggregate-GroupBy-repartition)
      <-- Aggregate-GroupBy-repartition-filter
    Processor: KSTREAM-PEEK-0000000002 (stores: [])
      --> none
      <-- KSTREAM-PROCESSVALUES-0000000001

  Sub-topology: 1
    Source: Aggregate-GroupBy-repartition-source (topics: [Aggregate-GroupBy-repartition])
      --> KSTREAM-AGGREGATE-0000000005
    Processor: KSTREAM-AGGREGATE-0000000005 (stores: [Aggregate-Aggregate-Materialize])
      --> Aggregate-Aggregate-ToOutputSchema
      <-- Aggregate-GroupBy-repartition-source
    Processor: Aggregate-Aggregate-ToOutputSchema (stores: [])
      --> Aggregate-Project
      <-- KSTREAM-AGGREGATE-0000000005
    Processor: Aggregate-Project (stores: [])
      --> KTABLE-TOSTREAM-0000000011
      <-- Aggregate-Aggregate-ToOutputSchema
    Processor: KTABLE-TOSTREAM-0000000011 (stores: [])
      --> KSTREAM-SINK-0000000012
      <-- Aggregate-Project
    Sink: KSTREAM-SINK-0000000012 (topic: T)
      <-- KTABLE-TOSTREAM-0000000011
"""
STORE = "CTAS_T_0.Aggregate.Aggregate.Materialize"
GOOD: dict[str, Any] = {
    "file": "file.json",
    "name": "name",
    "format": None,
    "queries": ["CTAS_T_0"],
    "schemas": {
        STORE: {
            "schema": "`V` STRING KEY, `V` STRING, `ROWTIME` BIGINT, `KSQL_AGG_VARIABLE_0` BIGINT",
            "keyFormat": {"format": "KAFKA"},
            "valueFormat": {"format": "JSON"},
        }
    },
    "topology": TOPOLOGY,
}


def compared(tmp_path: Path, **changes: object) -> list[str]:
    file = tmp_path / "plans.jsonl.gz"
    file.write_bytes(gzip.compress(json.dumps({**GOOD, **changes}).encode()))
    return differences(CASE, read_plans(file))


def test_group_by_has_the_plan_that_ksqldb_makes(tmp_path: Path) -> None:
    assert compared(tmp_path) == []


def test_what_differs_is_named(tmp_path: Path) -> None:
    store = GOOD["schemas"][STORE]
    assert "queries" in compared(tmp_path, queries=["CTAS_T_1"])[0]
    assert compared(tmp_path, schemas={"CTAS_T_0.X": store}) == ["there is no step CTAS_T_0.X"]
    assert "instead of AVRO" in compared(tmp_path, schemas={STORE: {**store, "keyFormat": {"format": "AVRO"}}})[0]
    assert (
        "KSTREAM-PEEK-0000000009"
        in compared(tmp_path, topology=TOPOLOGY.replace("PEEK-0000000002", "PEEK-0000000009"))[0]
    )


def test_file_without_plans_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "plans.jsonl"
    for text in ("no json", "[]", '{"name": "x"}'):
        file.write_text(text)
        with pytest.raises(NotCases, match="is not a file of plans"):
            read_plans(file)
