-- Errors per minute and code.
CREATE STREAM monitoring_stream (host STRING KEY, type STRING, error_code INT)
  WITH (KAFKA_TOPIC='monitoring', VALUE_FORMAT='JSON', PARTITIONS=2);

CREATE TABLE error_counts AS
  SELECT error_code, COUNT(*) AS errors
  FROM monitoring_stream
  WINDOW TUMBLING (SIZE 1 MINUTE)
  WHERE type = 'ERROR'
  GROUP BY error_code;
