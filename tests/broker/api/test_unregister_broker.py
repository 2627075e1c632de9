"""UnregisterBroker: brokers that are gone are forgotten, this one is not."""

from moldau.wire import messages as m
from moldau.wire.errors import Error


def test_an_unknown_broker_is_refused(world):
    for broker in (7, -1):
        assert world.call(m.UnregisterBrokerRequest(broker)).error_code == Error.BROKER_ID_NOT_REGISTERED


def test_a_broker_that_is_gone_is_forgotten(world):
    world.change(m.RegisterBrokerRecord(broker_id=7, broker_epoch=99))
    assert world.call(m.UnregisterBrokerRequest(7)).error_code == Error.NONE
    assert list(world.node.cluster.brokers) == [1]


def test_this_broker_stays(world):
    assert world.call(m.UnregisterBrokerRequest(1)).error_code == Error.INVALID_REQUEST
    assert list(world.node.cluster.brokers) == [1]
