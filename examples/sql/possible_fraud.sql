-- Cards with more than three attempts within five seconds.
CREATE STREAM authorization_attempts (card_number STRING KEY, amount DOUBLE)
  WITH (KAFKA_TOPIC='authorization_attempts', VALUE_FORMAT='JSON', PARTITIONS=2);

CREATE TABLE possible_fraud AS
  SELECT card_number, COUNT(*) AS attempts
  FROM authorization_attempts
  WINDOW TUMBLING (SIZE 5 SECONDS)
  GROUP BY card_number
  HAVING COUNT(*) > 3;
