"""Which brokers are healed, and when; how rates and rooms are read from answers."""

from __future__ import annotations

from dataclasses import replace

from moldau.admin.log_dirs import LogDir
from moldau.balance import healing
from moldau.balance.journal import Away, Forgotten
from moldau.balance.model import Model, Place
from moldau.balance.observing import Readings, room_of, with_rates
from moldau.client import Error
from tests.balance.clusters import regular


def hurt(*away: int) -> Model:
    model = regular(4, 8)
    return replace(
        model,
        brokers=tuple(replace(one, alive=one.id not in away, takes=one.id not in away) for one in model.brokers),
    )


def test_a_broker_is_written_down_when_it_goes_and_struck_off_when_it_is_back() -> None:
    assert healing.sightings(hurt(3), {}, 1000) == [Away(3, 1000)]
    assert healing.sightings(hurt(3), {3: 1000}, 2000) == []
    assert healing.sightings(hurt(), {3: 1000}, 3000) == [Forgotten("away/3")]


def test_only_a_broker_that_stays_away_is_healed() -> None:
    assert healing.due(hurt(3), {3: 1000}, 1000 + 599_000, 600) == ()
    assert healing.due(hurt(3), {3: 1000}, 1000 + 600_000, 600) == (3,)


def test_nothing_is_healed_while_half_of_the_brokers_are_away() -> None:
    assert healing.due(hurt(3, 4), {3: 0, 4: 0}, 10**9, 600) == ()


def folder(total: int, usable: int, error: Error = Error.NONE) -> LogDir:
    return LogDir("/d", error, (), total, usable)


def test_the_fullest_disk_decides_how_much_room_there_is() -> None:
    assert room_of([folder(1000, 300)]) == 300
    assert room_of([folder(1000, 300), folder(1000, 300)]) == 300, "two directories of one disk"
    assert room_of([folder(1000, 300), folder(1000, 500)]) == 600
    assert room_of([folder(1000, 300, Error.KAFKA_STORAGE_ERROR), folder(1000, 500)]) == 1000
    assert room_of([folder(-1, -1)]) is None


def test_rates_are_what_came_and_was_read_meanwhile() -> None:
    model = regular(3, 1, size=10_000)
    place: Place = ("t", 0)
    before: Readings = ({place: 80}, {("g", place): 50})
    after: Readings = ({place: 100}, {("g", place): 90, ("new", place): 7})
    [one] = with_rates(model, {place: 0}, before, after, 2.0).partitions
    assert (one.bytes_in, one.bytes_out) == (1000, 2000)
