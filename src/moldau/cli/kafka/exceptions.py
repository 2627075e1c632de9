"""Errors with the class names and messages of Kafka's Java client, which scripts look for."""

from __future__ import annotations

from moldau.client import ClientError, Error, outcomes

PACKAGE = "org.apache.kafka.common.errors."

# Where the class is not named after the error.
NAMES = {
    Error.UNKNOWN_SERVER_ERROR: "UnknownServerException",
    Error.INVALID_FETCH_SIZE: "InvalidFetchSizeException",
    Error.REQUEST_TIMED_OUT: "TimeoutException",
    Error.MESSAGE_TOO_LARGE: "RecordTooLargeException",
    Error.STALE_CONTROLLER_EPOCH: "ControllerMovedException",
    Error.OFFSET_METADATA_TOO_LARGE: "OffsetMetadataTooLarge",
    Error.NETWORK_EXCEPTION: "NetworkException",
    Error.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
    Error.RECORD_LIST_TOO_LARGE: "RecordBatchTooLargeException",
    Error.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
    Error.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
    Error.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
    Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "TransactionalIdAuthorizationException",
    Error.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "DelegationTokenAuthorizationException",
    Error.TOPIC_ALREADY_EXISTS: "TopicExistsException",
    Error.INVALID_CONFIG: "InvalidConfigurationException",
    Error.OUT_OF_ORDER_SEQUENCE_NUMBER: "OutOfOrderSequenceException",
    Error.DUPLICATE_SEQUENCE_NUMBER: "DuplicateSequenceException",
    Error.INVALID_PRODUCER_ID_MAPPING: "InvalidPidMappingException",
    Error.INVALID_TRANSACTION_TIMEOUT: "InvalidTxnTimeoutException",
    Error.KAFKA_STORAGE_ERROR: "KafkaStorageException",
    Error.SASL_AUTHENTICATION_FAILED: "SaslAuthenticationException",
    Error.DELEGATION_TOKEN_AUTH_DISABLED: "DelegationTokenDisabledException",
    Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "UnsupportedByAuthenticationException",
    Error.NON_EMPTY_GROUP: "GroupNotEmptyException",
    Error.FETCH_SESSION_TOPIC_ID_ERROR: "FetchSessionTopicIdException",
    Error.CORRUPT_MESSAGE: "CorruptRecordException",
    Error.INVALID_RECORD: "org.apache.kafka.common.InvalidRecordException",
    Error.INVALID_REGULAR_EXPRESSION: "InvalidRegularExpression",
    Error.PRINCIPAL_DESERIALIZATION_FAILURE: "PrincipalDeserializationException",
}

# The messages of the Java client for errors that come without one.
WORDS = {
    Error.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    Error.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    Error.NON_EMPTY_GROUP: "The group is not empty.",
    Error.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    Error.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    Error.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    Error.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    Error.OFFSET_OUT_OF_RANGE: "The requested offset is not within the range of offsets maintained by the server.",
    Error.LEADER_NOT_AVAILABLE: "There is no leader for this topic-partition as we are in the middle of a leadership "
    "election.",
    Error.GROUP_SUBSCRIBED_TO_TOPIC: "Deleting offsets of a topic is forbidden while the consumer group is actively "
    "subscribed to it.",
    Error.TRANSACTIONAL_ID_NOT_FOUND: "The transactionalId could not be found",
    Error.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
    Error.INVALID_REPLICA_ASSIGNMENT: "Replica assignment is invalid.",
    Error.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    Error.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    Error.ELIGIBLE_LEADERS_NOT_AVAILABLE: "Eligible topic partition leaders are not available.",
    Error.REQUEST_TIMED_OUT: "The request timed out.",
    Error.NOT_COORDINATOR: "This is not the correct coordinator.",
    Error.SECURITY_DISABLED: "Security features are disabled.",
    Error.FEATURE_UPDATE_FAILED: "Unable to update finalized features due to an unexpected server error.",
    Error.UNSUPPORTED_VERSION: "The version of API is not supported.",
}


# Errors of the client itself, whose own messages say more.
OF_CLIENT = (Error.NETWORK_EXCEPTION, Error.REQUEST_TIMED_OUT, Error.UNSUPPORTED_VERSION)


def class_name(error: Error) -> str:
    """Return the Java class of an error, with its package."""
    stem = "".join(word.capitalize() for word in error.name.split("_"))
    name = NAMES.get(error, f"{stem}Exception")
    return name if "." in name else PACKAGE + name


def words(error: Error, message: str | None = None) -> str:
    """Return the message of an error: the broker's own, or that of the Java client."""
    return message or WORDS.get(error, error.message)


def spoken(error: Error, message: str | None = None) -> str:
    """Write an error as Java prints an exception: the class and the message."""
    return f"{class_name(error)}: {words(error, message)}"


def words_of(error: ClientError) -> str:
    """Return the message of a failed call: the broker's, Kafka's, or the client's about the network."""
    for outcome in outcomes(error.answer) if error.answer is not None else ():
        if outcome.error:
            return words(outcome.error, outcome.message)
    return WORDS.get(error.error, str(error)) if error.error not in OF_CLIENT else str(error)
