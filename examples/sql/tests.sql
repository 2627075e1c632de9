-- Tests of the examples: `moldau sql test examples/sql`. They run in memory.

--@test: four attempts within five seconds are suspicious, three are not
RUN SCRIPT 'possible_fraud.sql';
INSERT INTO authorization_attempts (ROWTIME, card_number, amount) VALUES (1000, 'visa-1', 10.0);
INSERT INTO authorization_attempts (ROWTIME, card_number, amount) VALUES (1500, 'visa-2', 99.5);
INSERT INTO authorization_attempts (ROWTIME, card_number, amount) VALUES (2000, 'visa-1', 10.0);
INSERT INTO authorization_attempts (ROWTIME, card_number, amount) VALUES (3000, 'visa-1', 10.0);
INSERT INTO authorization_attempts (ROWTIME, card_number, amount) VALUES (4000, 'visa-1', 10.0);
INSERT INTO authorization_attempts (ROWTIME, card_number, amount) VALUES (6000, 'visa-1', 10.0);
ASSERT VALUES possible_fraud (card_number, attempts, windowstart) VALUES ('visa-1', 4, 0);

--@test: clicks of platinum users go to vip_users
RUN SCRIPT 'vip_users.sql';
INSERT INTO users (user_id, level) VALUES ('ada', 'Platinum');
INSERT INTO users (user_id, level) VALUES ('bob', 'Gold');
INSERT INTO clickstream (userid, page, action) VALUES ('bob', '/home', 'view');
INSERT INTO clickstream (userid, page, action) VALUES ('eve', '/home', 'view');
INSERT INTO clickstream (userid, page, action) VALUES ('ada', '/shop', 'buy');
ASSERT VALUES vip_users (userid, page, action) VALUES ('ada', '/shop', 'buy');
ASSERT STREAM vip_users (userid STRING KEY, page STRING, action STRING) WITH (KAFKA_TOPIC='VIP_USERS', VALUE_FORMAT='JSON');

--@test: errors are counted per minute
RUN SCRIPT 'error_counts.sql';
INSERT INTO monitoring_stream (ROWTIME, host, type, error_code) VALUES (1000, 'a', 'ERROR', 500);
INSERT INTO monitoring_stream (ROWTIME, host, type, error_code) VALUES (2000, 'a', 'INFO', 200);
INSERT INTO monitoring_stream (ROWTIME, host, type, error_code) VALUES (3000, 'b', 'ERROR', 500);
INSERT INTO monitoring_stream (ROWTIME, host, type, error_code) VALUES (61000, 'b', 'ERROR', 500);
ASSERT VALUES error_counts (error_code, errors, windowstart) VALUES (500, 1, 0);
ASSERT VALUES error_counts (error_code, errors, windowstart) VALUES (500, 2, 0);
ASSERT VALUES error_counts (error_code, errors, windowstart) VALUES (500, 1, 60000);

--@test: a user who moves is counted in the new region
RUN SCRIPT 'users_per_region.sql';
INSERT INTO user_locations (user_id, region) VALUES ('alice', 'Europe');
INSERT INTO user_prefs (user_id, age) VALUES ('alice', 25);
ASSERT VALUES users_per_region (region, young_users) VALUES ('Europe', 1);
INSERT INTO user_locations (user_id, region) VALUES ('alice', 'Asia');
ASSERT VALUES users_per_region (region, young_users) VALUES ('Europe', 0);
ASSERT VALUES users_per_region (region, young_users) VALUES ('Asia', 1);

--@test: a column that does not exist is refused
--@expected.error: io.confluent.ksql.util.KsqlException
--@expected.message: column 'PAGES' cannot be resolved
RUN SCRIPT 'vip_users.sql';
CREATE STREAM wrong AS SELECT pages FROM clickstream;
