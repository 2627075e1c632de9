"""The table of pages. A page is a row here and a file beside this one, with a function `show(desk)` that makes it.

Rows with an icon are in the navigation, in this order; the others are reached from other pages. Parts of the path in
braces are in `desk.path`, what follows `?` is in `desk.query`.
"""

from __future__ import annotations

from moldau.console.frame import Page
from moldau.console.pages import (
    access,
    applications,
    balance,
    broker,
    brokers,
    connectors,
    group,
    groups,
    health,
    lineage,
    messages,
    new_connector,
    overview,
    schema,
    schemas,
    sql,
    sql_queries,
    topic,
    topics,
)

PAGES = (
    Page("/", "Overview", "dashboard", overview.show),
    Page("/topics", "Topics", "view_list", topics.show),
    Page("/topics/{name}", "Topic", None, topic.show),
    Page("/topics/{name}/messages", "Messages", None, messages.show),
    Page("/groups", "Groups", "groups", groups.show),
    Page("/groups/{name:path}", "Group", None, group.show),
    Page("/schemas", "Schemas", "schema", schemas.show),
    Page("/schemas/{name:path}", "Schema", None, schema.show),
    Page("/applications", "Applications", "bolt", applications.show),
    Page("/applications/{name:path}", "Application", None, applications.show_one),
    Page("/connectors", "Connectors", "cable", connectors.show),
    Page("/connectors/{name:path}", "Connector", None, connectors.show_one),
    Page("/new-connector", "New connector", None, new_connector.show),
    Page("/sql", "SQL", "terminal", sql.show),
    Page("/sql/queries", "SQL queries", None, sql_queries.show),
    Page("/sql/queries/{name:path}", "SQL query", None, sql_queries.show_one),
    Page("/lineage", "Lineage", "account_tree", lineage.show),
    Page("/brokers", "Brokers", "dns", brokers.show),
    Page("/brokers/{name}", "Broker", None, broker.show),
    Page("/health", "Health", "monitor_heart", health.show),
    Page("/balance", "Balance", "balance", balance.show),
    Page("/access", "Access", "lock", access.show),
)
