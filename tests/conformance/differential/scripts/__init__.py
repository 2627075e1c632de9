"""The scripts, in the order they are played. Each makes its own topics, and takes its settings of brokers back."""

from __future__ import annotations

from tests.conformance.differential.case import Script
from tests.conformance.differential.scripts import (
    broker_configs,
    classic_groups,
    cluster,
    configs,
    consumer_groups,
    fetch,
    group_offsets,
    mixed_groups,
    offsets,
    produce,
    quotas,
    share_groups,
    shares,
    strangers,
    streams_groups,
    topics,
    transactions,
    versions,
)

# Those that look at all topics come before those that make the brokers create internal ones.
SCRIPTS: tuple[Script, ...] = (
    versions.SCRIPT,
    topics.SCRIPT,
    topics.PAGES,
    configs.TOPICS,
    configs.CLIENTS,
    broker_configs.SCRIPT,
    quotas.SCRIPT,
    cluster.SCRIPT,
    produce.SCRIPT,
    produce.IDEMPOTENT,
    fetch.SCRIPT,
    fetch.SESSIONS,
    offsets.SCRIPT,
    strangers.SCRIPT,
    transactions.SCRIPT,
    classic_groups.SCRIPT,
    group_offsets.SCRIPT,
    consumer_groups.SCRIPT,
    mixed_groups.SCRIPT,
    share_groups.SCRIPT,
    shares.COORDINATOR,
    shares.MEMBERS,
    streams_groups.SCRIPT,
)
