"""`moldau balancer`: runs a balancer until it is stopped."""

from __future__ import annotations

import signal
import threading

from moldau.admin import resets
from moldau.admin.mistakes import Mistake
from moldau.balance.balancer import Duty, run_for_good
from moldau.cli.balance import Wishes
from moldau.cli.commands import NO_REGISTRY, command, parse
from moldau.cli.options import epilog, option
from moldau.cli.services import log_to_stderr
from moldau.cli.session import Session
from moldau.topicstore import StoreError

EPILOG = epilog("moldau balancer --heal-after 10m", "moldau balancer --balance-every 1h --throttle 20MB")


def balancer(
    session: Session,
    wishes: Wishes,
    heal_after: str = option("--heal-after", "Make replicas of a broker anew after it was away this long.", "10m"),
    balance_every: str | None = option(
        "--balance-every", "Balance the cluster this often too, such as 1h; by default only heal.", metavar="TIME"
    ),
    look_every: str = option("--look-every", "Look at the cluster this often.", "10s", metavar="TIME"),
) -> None:
    """Run a balancer: it heals the cluster when a broker stays away, and finishes plans that were interrupted.

    Several may run; one of them is active. It prints `ready` when it has read its journal. Logs go to stderr.
    """
    duty = Duty(
        parse(resets.duration, heal_after).total_seconds(),
        parse(resets.duration, balance_every).total_seconds() if balance_every else 0.0,
        wishes.rate(),
        wishes.chosen(),
        wishes.limits(),
        parse(resets.duration, look_every).total_seconds(),
    )
    log_to_stderr("moldau.balance")
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    try:
        run_for_good(session.connection.kafka_settings, duty, stopped.wait, lambda: print("ready", flush=True))
    except StoreError as error:
        raise Mistake(str(error)) from None


cli = command(balancer, (*NO_REGISTRY, "output"))
