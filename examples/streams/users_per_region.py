"""How many users younger than 30 there are in each region, now.

Two teams keep a topic each, `user-locations` (region) and `user-prefs` (age); both are read as tables, so a user who
moves leaves one count and enters another. `python examples/streams/users_per_region.py` runs it on localhost:9092.
"""

from moldau.streams import Json, StreamsBuilder, String

builder = StreamsBuilder("users-per-region")
locations = builder.table("user-locations", key=String(), value=String())
preferences = builder.table("user-prefs", key=String(), value=Json())
(
    locations.join(preferences, lambda region, user: {"region": region, "age": user["age"]}, value=Json())
    .filter(lambda user, profile: profile["age"] < 30)
    .group_by(lambda user, profile: (profile["region"], user), key=String(), value=String())
    .count(store="young-users")
    .to_stream()
    .to("users-per-region")
)

if __name__ == "__main__":
    builder.run()
