"""How answers are made comparable and differences judged, without brokers."""

from __future__ import annotations

from moldau.wire import messages as m
from tests.conformance.differential.accepted import Accepted, Judgement
from tests.conformance.differential.case import Case, topic_id
from tests.conformance.differential.normal import Difference, Normal, differences
from tests.conformance.differential.target import Target

KAFKA, MOLDAU = Target("Kafka", 1, "/kafka"), Target("Moldau", 2, "/moldau")
KAFKA.ids, MOLDAU.ids = {"t": b"k" * 16}, {"t": b"m" * 16}
METADATA = Case("all", "Metadata", 12)


def topic(name: str, number: int, error: int = 0) -> m.MetadataResponse_MetadataResponseTopic:
    return m.MetadataResponse_MetadataResponseTopic(error, name, bytes([number]) * 16)


def found(kafka: m.MetadataResponse, moldau: m.MetadataResponse) -> list[Difference]:
    return list(differences(Normal(METADATA, KAFKA)(kafka), Normal(METADATA, MOLDAU)(moldau)))


def test_ids_places_and_a_hashs_order_are_no_difference() -> None:
    kafka = m.MetadataResponse(topics=[topic("t", ord("k")), topic("u", 1)], cluster_id="a")
    moldau = m.MetadataResponse(topics=[topic("u", 2), topic("t", ord("m"))], cluster_id="b")
    assert found(kafka, moldau) == []


def test_a_difference_has_a_path_and_names_of_errors() -> None:
    kafka, moldau = (m.MetadataResponse(topics=[topic("u", 1, error)]) for error in (0, 3))
    path = "topics.u some id.error_code"
    assert found(kafka, moldau) == [Difference(path, "NONE", "UNKNOWN_TOPIC_OR_PARTITION")]


def test_what_one_broker_leaves_out_is_absent() -> None:
    (difference,) = found(m.MetadataResponse(topics=[topic("u", 1)]), m.MetadataResponse())
    assert difference.moldau == "absent"


def judging(*rows: Accepted) -> Judgement:
    judgement = Judgement("none of this name")
    judgement.own = judgement.rows = rows
    return judgement


def test_only_what_a_row_covers_is_accepted() -> None:
    judgement = judging(Accepted(("a*",), "because", ("*.error_code",), "NONE"))
    covered, other = Difference("x.error_code", "NONE", 1), Difference("x.error_code", "CORRUPT_MESSAGE", 1)
    assert judgement.unexpected("ab", [covered, other]) == [other]
    assert judgement.unexpected("b", [covered]) == [covered]


def test_a_row_that_nothing_needs_is_told() -> None:
    judgement = judging(Accepted(("a", "b"), "because", ("x",)))
    judgement.unexpected("a", [Difference("x", 1, 2)])
    assert judgement.unneeded() == ["accepted.toml: b (x) agrees now"]


def test_a_body_is_plain_data_that_knows_its_version() -> None:
    partitions = [{"partition": 3, "fetch_offset": 7}]
    body = {"topics": [{"topic": "t", "topic_id": topic_id("t"), "partitions": partitions}], "min_bytes": 1}
    case = Case("fetch", "Fetch", (12, 13), body)
    assert b"t" in case.frame(KAFKA, 12, 1) and b"k" * 16 not in case.frame(KAFKA, 12, 1)
    assert b"k" * 16 in case.frame(KAFKA, 13, 1)
