-- What users of the platinum level do: a stream of clicks, joined with a table of users.
CREATE STREAM clickstream (userid STRING KEY, page STRING, action STRING)
  WITH (KAFKA_TOPIC='clickstream', VALUE_FORMAT='JSON', PARTITIONS=2);

CREATE TABLE users (user_id STRING PRIMARY KEY, level STRING)
  WITH (KAFKA_TOPIC='users', VALUE_FORMAT='JSON', PARTITIONS=2);

CREATE STREAM vip_users AS
  SELECT c.userid, c.page, c.action
  FROM clickstream c
  LEFT JOIN users u ON c.userid = u.user_id
  WHERE u.level = 'Platinum';
