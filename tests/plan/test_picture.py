"""A plan as a flowchart."""

from __future__ import annotations

from moldau.streams import StreamsBuilder


def test_a_picture_has_nodes_topics_and_stores() -> None:
    builder = StreamsBuilder("app")
    builder.stream("in").group_by_key().count(store="counts").to_stream().to("out")
    assert builder.picture() == (
        "flowchart TD\n"
        '  subgraph g0["sub-topology 0"]\n'
        '    n0["KSTREAM-SOURCE-0000000000"]\n'
        '    n1["KSTREAM-AGGREGATE-0000000001"]\n'
        '    n2["KTABLE-TOSTREAM-0000000002"]\n'
        '    n3["KSTREAM-SINK-0000000003"]\n'
        "  end\n"
        '  t0([" in "])\n  t0 --> n0\n'
        "  n0 --> n1\n  n1 --> n2\n  n2 --> n3\n"
        '  t1([" out "])\n  n3 --> t1\n'
        '  s0[("counts")]\n  n1 -.- s0\n'
    )


def test_a_repartition_topic_stands_between_two_boxes() -> None:
    builder = StreamsBuilder("app")
    builder.stream("in").select_key(lambda key, value: value).repartition(name="again").to("out")
    text = builder.picture()
    assert text.count("subgraph") == 2
    assert text.count('" again-repartition "') == 2 and "t1 --> n4" in text and "n3 --> t1" in text
