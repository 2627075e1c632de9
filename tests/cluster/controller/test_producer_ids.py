"""AllocateProducerIds: blocks that follow each other."""

from __future__ import annotations

from moldau.cluster.controller.producer_ids import allocate_producer_ids
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.cluster.controller.images import EPOCH, image_of


def test_blocks_follow_each_other() -> None:
    image = image_of()
    for broker, first in ((1, 0), (2, 1000), (1, 2000)):
        result = allocate_producer_ids(image, m.AllocateProducerIdsRequest(broker, EPOCH + broker))
        assert (result.response.producer_id_start, result.response.producer_id_len) == (first, 1000)
        image.replay(result.records[0])


def test_another_process_is_refused() -> None:
    for broker, epoch in ((1, EPOCH), (9, EPOCH + 9)):
        result = allocate_producer_ids(image_of(), m.AllocateProducerIdsRequest(broker, epoch))
        assert (result.records, result.response.error_code) == ([], Error.STALE_BROKER_EPOCH)


def test_ids_do_not_begin_again() -> None:
    image = image_of()
    image.next_producer_id = 2**63 - 1000
    request = m.AllocateProducerIdsRequest(1, EPOCH + 1)
    assert allocate_producer_ids(image, request).response.error_code == Error.UNKNOWN_SERVER_ERROR
    image.next_producer_id -= 1
    assert allocate_producer_ids(image, request).response.error_code == 0
