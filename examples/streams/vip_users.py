"""What users of level Platinum click: `clickstream` joined with the table `users`, both by user id, to `vip_users`.

`python examples/streams/vip_users.py` runs it on localhost:9092.
"""

from moldau.streams import Json, StreamsBuilder, String

builder = StreamsBuilder("vip-users")
clicks = builder.stream("clickstream", key=String(), value=Json())
users = builder.table("users", key=String(), value=Json())
(
    clicks.join(users, lambda click, user: {**click, "level": user["level"]})
    .filter(lambda user_id, click: click["level"] == "Platinum")
    .to("vip_users", value=Json())
)

if __name__ == "__main__":
    builder.run()
