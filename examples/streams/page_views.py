"""Page views by region, in sessions: `pageviews` (key: user) joined with the table `users`, counted by region until
five minutes pass without a view, to `views-by-region`. `python examples/streams/page_views.py` runs it.
"""

from moldau.streams import Json, SessionWindows, StreamsBuilder, String

builder = StreamsBuilder("page-views")
views = builder.stream("pageviews", key=String(), value=Json())
users = builder.table("users", key=String(), value=Json())
(
    views.left_join(users, lambda view, user: user["region"] if user else "unknown")
    .group_by(lambda user_id, region: region, key=String(), value=String())
    .windowed_by(SessionWindows.of("5 minutes", grace="1 minute"))
    .count(store="sessions")
    .to_stream()
    .to("views-by-region")
)

if __name__ == "__main__":
    builder.run()
