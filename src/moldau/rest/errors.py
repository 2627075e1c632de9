"""Confluent's error codes, and which of them stands for which error of Kafka."""

from __future__ import annotations

from confluent_kafka import KafkaError

from moldau.client import ClientError, Error
from moldau.http import HttpError

BAD_REQUEST = 40002
AUTHENTICATION, AUTHORIZATION = 40101, 40301
TOPIC_NOT_FOUND, PARTITION_NOT_FOUND, INSTANCE_NOT_FOUND = 40401, 40402, 40403
UNKNOWN_TOPIC_OR_PARTITION = 40403  # version 3 says it with the number that version 2 has for instances
CANNOT_DESERIALIZE = 40801
INSTANCE_EXISTS, ILLEGAL_STATE = 40902, 40903
KEY_SCHEMA_MISSING, VALUE_SCHEMA_MISSING = 42201, 42202
WRONG_CONSUMER, CONSUMER_CONSTRAINT = 42204, 40001
WRONG_SCHEMA, WRONG_PAYLOAD, CANNOT_SERIALIZE, WRONG_BATCH = 42205, 42206, 42207, 42208
FORMAT_MISMATCH = 40601
TOO_MANY = 42901
KAFKA, RETRIABLE, NO_BROKER = 50002, 50003, 50302

# What stands before the detail, or the whole message: in the words of Confluent's proxy, which clients look for.
MESSAGES = {
    TOPIC_NOT_FOUND: "Topic not found.",
    PARTITION_NOT_FOUND: "Partition not found.",
    INSTANCE_NOT_FOUND: "Consumer instance not found.",
    INSTANCE_EXISTS: "Consumer with specified consumer ID already exists in the specified consumer group.",
    ILLEGAL_STATE: "Illegal state: ",
    KEY_SCHEMA_MISSING: "Request includes keys but does not include key schema",
    VALUE_SCHEMA_MISSING: "Request includes values but does not include value schema",
    WRONG_CONSUMER: "Invalid consumer configuration: ",
    CONSUMER_CONSTRAINT: "Invalid consumer configuration. It does not abide by the constraints: ",
    WRONG_SCHEMA: "Invalid schema: ",
    WRONG_PAYLOAD: "Payload error. ",
    CANNOT_SERIALIZE: "Error serializing message. ",
    FORMAT_MISMATCH: "The requested embedded data format does not match the deserializer for this consumer instance",
}
NO_DATA = "Null input provided. Data is required."
STATUS = {CONSUMER_CONSTRAINT: 422}  # else a code begins with its status

BAD = (
    "INVALID_REPLICATION_FACTOR", "SECURITY_DISABLED", "UNSUPPORTED_VERSION", "INVALID_PARTITIONS", "INVALID_REQUEST",
    "UNKNOWN_SERVER_ERROR", "POLICY_VIOLATION", "TOPIC_ALREADY_EXISTS", "INVALID_CONFIG", "TOPIC_DELETION_DISABLED",
    "INVALID_TOPIC_EXCEPTION", "INVALID_REPLICA_ASSIGNMENT", "INVALID_GROUP_ID",
)  # fmt: skip
CODES = {
    **{Error[name]: BAD_REQUEST for name in BAD},
    **{error: AUTHORIZATION for error in Error if error.name.endswith("AUTHORIZATION_FAILED")},
    Error.SASL_AUTHENTICATION_FAILED: AUTHENTICATION,
    Error.UNKNOWN_TOPIC_OR_PARTITION: UNKNOWN_TOPIC_OR_PARTITION,
    Error.UNKNOWN_TOPIC_ID: UNKNOWN_TOPIC_OR_PARTITION,
    Error.BROKER_NOT_AVAILABLE: NO_BROKER,
    Error.MESSAGE_TOO_LARGE: 413,
    Error.THROTTLING_QUOTA_EXCEEDED: TOO_MANY,
}
# librdkafka's own errors, by what they are to Kafka.
LOCAL = {
    KafkaError._UNKNOWN_TOPIC: Error.UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError._UNKNOWN_PARTITION: Error.UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError._AUTHENTICATION: Error.SASL_AUTHENTICATION_FAILED,
    KafkaError._TIMED_OUT: Error.REQUEST_TIMED_OUT,
    KafkaError._MSG_TIMED_OUT: Error.REQUEST_TIMED_OUT,
    KafkaError._TRANSPORT: Error.NETWORK_EXCEPTION,
    KafkaError._ALL_BROKERS_DOWN: Error.NETWORK_EXCEPTION,
    KafkaError._WAIT_COORD: Error.COORDINATOR_NOT_AVAILABLE,
    KafkaError._INVALID_ARG: Error.INVALID_REQUEST,
}


def refusal(code: int, detail: str = "") -> HttpError:
    """Return an error by its code, with a detail."""
    error = HttpError(code, f"{MESSAGES.get(code, '')}{detail}")
    error.status = STATUS.get(code, error.status)
    return error


def not_found(what: str) -> HttpError:
    return HttpError(404, f"{what} cannot be found.")


def of_kafka(error: Error, sentence: str, retriable: bool | None = None) -> HttpError:
    """Turn an error of Kafka into a refusal."""
    if (code := CODES.get(error)) is not None:
        return HttpError(code, sentence)
    return HttpError(RETRIABLE if (error.retriable if retriable is None else retriable) else KAFKA, sentence)


def of_client(error: ClientError) -> HttpError:
    return of_kafka(error.error, str(error), error.retriable)


def of_librdkafka(error: KafkaError) -> HttpError:
    if error.code() == KafkaError._STATE:
        return refusal(ILLEGAL_STATE, error.str())
    return of_kafka(kafka_error(error), error.str(), error.retriable() or None)


def kafka_error(error: KafkaError) -> Error:
    found = LOCAL.get(error.code())
    if found is None:
        known = error.code() >= 0 and error.code() in Error._value2member_map_
        found = Error(error.code()) if known else Error.UNKNOWN_SERVER_ERROR
    return found
