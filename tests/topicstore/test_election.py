"""Who writes: the choice, and what members tell each other."""

from __future__ import annotations

import json

from moldau.client import Peer
from moldau.topicstore import Identity
from moldau.topicstore.election import assign, choose


def test_the_group_chooses_who_leads_or_whose_url_is_first() -> None:
    one, two, three = Identity("a", 2), Identity("a", 1), Identity("a", 3, leads=True)
    assert choose({"1": one, "2": two}) == "2"
    assert choose({"1": one, "2": two, "3": three}) == "3"
    assert choose({"1": one, "2": Identity("a", 1, eligible=False)}) == "1"
    assert choose({"2": Identity("a", 1, eligible=False)}) is None
    assert choose({}) is None


def test_assignments_are_those_of_confluent() -> None:
    theirs = b'{"version":1,"host":"h","port":8081,"master_eligibility":true,"scheme":"https","other":1}'
    told = assign("v0", [Peer("m", None, theirs)])
    identity = {"version": 1, "host": "h", "port": 8081, "master_eligibility": True, "scheme": "https", "leader": False}
    assert json.loads(told["m"]) == {"version": 1, "error": 0, "master": "m", "master_identity": identity}
    twice = assign("v0", [Peer("m", None, theirs), Peer("n", None, theirs)])
    assert json.loads(twice["n"]) == {"version": 1, "error": 1}
