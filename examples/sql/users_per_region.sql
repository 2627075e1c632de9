-- How many users are younger than thirty, per region: two tables of two teams, joined and counted.
-- A user who moves, or who has a birthday, is taken out of one count and put into another.
CREATE TABLE user_locations (user_id STRING PRIMARY KEY, region STRING)
  WITH (KAFKA_TOPIC='user-locations', VALUE_FORMAT='JSON', PARTITIONS=2);

CREATE TABLE user_prefs (user_id STRING PRIMARY KEY, age INT)
  WITH (KAFKA_TOPIC='user-prefs', VALUE_FORMAT='JSON', PARTITIONS=2);

CREATE TABLE user_profiles AS
  SELECT l.user_id AS user_id, l.region AS region, p.age AS age
  FROM user_locations l
  JOIN user_prefs p ON l.user_id = p.user_id;

CREATE TABLE users_per_region AS
  SELECT region, COUNT(*) AS young_users
  FROM user_profiles
  WHERE age < 30
  GROUP BY region;
