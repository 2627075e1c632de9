"""UpdateFeatures: all levels or none, and dry runs."""

import pytest

from moldau.wire import messages as m
from moldau.wire.errors import Error


def update(world, *wishes, validate_only=False, version=2):
    rows = [m.UpdateFeaturesRequest_FeatureUpdateKey(name, level, upgrade_type=kind) for name, level, kind in wishes]
    return world.call(m.UpdateFeaturesRequest(1000, rows, validate_only), version)


def levels(world):
    return dict(world.node.cluster.features)


@pytest.mark.parametrize("version", [1, 2])
def test_levels_change_and_stay(world, version):
    assert update(world, ("group.version", 0, 2), ("transaction.version", 1, 3), version=version).error_code == 0
    world.restart()
    assert "group.version" not in levels(world)
    assert levels(world)["transaction.version"] == 1
    assert update(world, ("group.version", 1, 1), version=version).error_code == 0
    assert levels(world)["group.version"] == 1


def test_a_dry_run_changes_nothing(world):
    before = levels(world)
    assert update(world, ("group.version", 0, 2), validate_only=True).error_code == 0
    assert levels(world) == before


@pytest.mark.parametrize("version", [0, 1, 2])
def test_one_refusal_stops_all(world, version):
    before = levels(world)
    answer = update(world, ("group.version", 1, 1), ("unknown", 1, 1), version=version)
    assert (answer.error_code, list(answer.results)) == (Error.INVALID_UPDATE_VERSION, [])
    assert answer.error_message
    assert levels(world) == before


def test_each_feature_has_a_row_before_version_2(world):
    for version in (0, 1):
        answer = update(world, ("group.version", 1, 1), ("share.version", 1, 1), version=version)
        assert [(row.feature, row.error_code) for row in answer.results] == [("group.version", 0), ("share.version", 0)]
    assert list(update(world, ("group.version", 1, 1)).results) == []
    assert update(world).error_code == 0


def test_allow_downgrade_of_version_0_is_not_looked_at(world):
    wish = m.UpdateFeaturesRequest_FeatureUpdateKey("group.version", 0, True)
    answer = world.call(m.UpdateFeaturesRequest(1000, [wish]), 0)
    assert answer.error_code == Error.INVALID_UPDATE_VERSION
