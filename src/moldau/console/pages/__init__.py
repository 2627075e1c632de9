"""The table of pages. A page is a row here and a file beside this one, with a function `show(desk)` that makes it.

A row with an icon stands in the navigation, in this order; one without is reached from others. Parts of the path in
braces are in `desk.path`, what stands behind a `?` in `desk.query`.
"""

from __future__ import annotations

from moldau.console.frame import Page
from moldau.console.pages import messages, overview, topic, topics

PAGES = (
    Page("/", "Overview", "dashboard", overview.show),
    Page("/topics", "Topics", "view_list", topics.show),
    Page("/topics/{name}", "Topic", None, topic.show),
    Page("/topics/{name}/messages", "Messages", None, messages.show),
)
