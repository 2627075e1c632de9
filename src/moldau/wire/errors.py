"""Error codes of the protocol as a table, and the one exception for bytes that are not what they should be."""

from __future__ import annotations

from enum import IntEnum

RETRY = True
FINAL = False


class WireError(Exception):
    """Bytes from a peer that do not decode: the peer's fault."""


class Unwritable(ValueError):
    """A message that its version cannot carry: the writer's fault."""


class UnsupportedRequest(WireError):
    """A request whose API key or version is not in the table, as far as its header could be read."""

    def __init__(self, key: int, version: int, correlation_id: int, client_id: str | None) -> None:
        super().__init__(f"request with API key {key} and version {version} is not supported")
        self.key = key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id


class Error(IntEnum):
    """An error code of a response: its number, whether the same request may succeed later, and a sentence about it."""

    retriable: bool
    message: str

    def __new__(cls, code: int, retriable: bool, message: str) -> Error:
        self = int.__new__(cls, code)
        self._value_ = code
        self.retriable = retriable
        self.message = message
        return self

    # fmt: off
    UNKNOWN_SERVER_ERROR = -1, FINAL, "Something went wrong on the server that it did not expect."
    NONE = 0, FINAL, "No error."
    OFFSET_OUT_OF_RANGE = 1, FINAL, "The log does not hold this offset."
    CORRUPT_MESSAGE = 2, RETRY, "A batch is damaged, of a wrong size, or lacks a key that its topic asks for."
    UNKNOWN_TOPIC_OR_PARTITION = 3, RETRY, "There is no such topic or partition here."
    INVALID_FETCH_SIZE = 4, FINAL, "The fetch size makes no sense."
    LEADER_NOT_AVAILABLE = 5, RETRY, "The partition has no leader just now."
    NOT_LEADER_OR_FOLLOWER = 6, RETRY, "This broker does not lead the partition, or has no replica of it."
    REQUEST_TIMED_OUT = 7, RETRY, "The time allowed for the request ran out."
    BROKER_NOT_AVAILABLE = 8, FINAL, "The broker cannot be reached."
    REPLICA_NOT_AVAILABLE = 9, RETRY, "The replica cannot be reached."
    MESSAGE_TOO_LARGE = 10, FINAL, "A batch is larger than the topic allows."
    STALE_CONTROLLER_EPOCH = 11, FINAL, "Another controller has taken over."
    OFFSET_METADATA_TOO_LARGE = 12, FINAL, "The metadata that goes with an offset is too large."
    NETWORK_EXCEPTION = 13, RETRY, "The connection ended before the answer came."
    COORDINATOR_LOAD_IN_PROGRESS = 14, RETRY, "The coordinator is still loading its state."
    COORDINATOR_NOT_AVAILABLE = 15, RETRY, "There is no coordinator just now."
    NOT_COORDINATOR = 16, RETRY, "Another broker is the coordinator."
    INVALID_TOPIC_EXCEPTION = 17, FINAL, "The topic's name is not valid, or the topic may not be used so."
    RECORD_LIST_TOO_LARGE = 18, FINAL, "The batches are larger than a segment."
    NOT_ENOUGH_REPLICAS = 19, RETRY, "Too few replicas are in sync; nothing was written."
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, RETRY, "The records were written, but too few replicas are in sync."
    INVALID_REQUIRED_ACKS = 21, FINAL, "acks is none of 0, 1 and -1."
    ILLEGAL_GENERATION = 22, FINAL, "The group is at another generation."
    INCONSISTENT_GROUP_PROTOCOL = 23, FINAL, "The member and its group have no protocol in common."
    INVALID_GROUP_ID = 24, FINAL, "The group's id is not valid."
    UNKNOWN_MEMBER_ID = 25, FINAL, "The group has no such member."
    INVALID_SESSION_TIMEOUT = 26, FINAL, "The session timeout is outside the bounds that the broker sets."
    REBALANCE_IN_PROGRESS = 27, FINAL, "The group is rebalancing; join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, FINAL, "The committed offset takes more room than it may."
    TOPIC_AUTHORIZATION_FAILED = 29, FINAL, "Not allowed on this topic."
    GROUP_AUTHORIZATION_FAILED = 30, FINAL, "Not allowed on this group."
    CLUSTER_AUTHORIZATION_FAILED = 31, FINAL, "Not allowed on this cluster."
    INVALID_TIMESTAMP = 32, FINAL, "A record's timestamp is too far off."
    UNSUPPORTED_SASL_MECHANISM = 33, FINAL, "The broker does not offer this SASL mechanism."
    ILLEGAL_SASL_STATE = 34, FINAL, "This request does not fit the state of authentication."
    UNSUPPORTED_VERSION = 35, FINAL, "The broker does not speak this version of the API."
    TOPIC_ALREADY_EXISTS = 36, FINAL, "There is a topic of this name already."
    INVALID_PARTITIONS = 37, FINAL, "The number of partitions is not valid."
    INVALID_REPLICATION_FACTOR = 38, FINAL, "The replication factor is below one or above the number of brokers."
    INVALID_REPLICA_ASSIGNMENT = 39, FINAL, "The assignment of replicas is not valid."
    INVALID_CONFIG = 40, FINAL, "A setting is not valid."
    NOT_CONTROLLER = 41, RETRY, "This node is not the controller."
    INVALID_REQUEST = 42, FINAL, "The request contradicts itself or the protocol."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, FINAL, "The format of the records does not allow this."
    POLICY_VIOLATION = 44, FINAL, "A policy of the cluster forbids this."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, FINAL, "The producer's sequence number does not follow the last one."
    DUPLICATE_SEQUENCE_NUMBER = 46, FINAL, "The producer's sequence number was seen before."
    INVALID_PRODUCER_EPOCH = 47, FINAL, "The producer's epoch is older than the one known here."
    INVALID_TXN_STATE = 48, FINAL, "The transaction is in a state that does not allow this."
    INVALID_PRODUCER_ID_MAPPING = 49, FINAL, "The producer id does not belong to this transactional id."
    INVALID_TRANSACTION_TIMEOUT = 50, FINAL, "The transaction timeout is longer than the broker allows."
    CONCURRENT_TRANSACTIONS = 51, RETRY, "An earlier operation on the transaction is still under way."
    TRANSACTION_COORDINATOR_FENCED = 52, FINAL, "A newer transaction coordinator is in charge of this producer."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, FINAL, "Not allowed on this transactional id."
    SECURITY_DISABLED = 54, FINAL, "No authorizer is set up."
    OPERATION_NOT_ATTEMPTED = 55, FINAL, "Not tried, because something else in the request failed."
    KAFKA_STORAGE_ERROR = 56, RETRY, "The disk failed; the partition is offline here."
    LOG_DIR_NOT_FOUND = 57, FINAL, "The broker has no such log directory."
    SASL_AUTHENTICATION_FAILED = 58, FINAL, "The credentials were not accepted."
    UNKNOWN_PRODUCER_ID = 59, FINAL, "Nothing is known here of this producer id, perhaps no longer."
    REASSIGNMENT_IN_PROGRESS = 60, FINAL, "The partition is being reassigned."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, FINAL, "Delegation tokens are not switched on."
    DELEGATION_TOKEN_NOT_FOUND = 62, FINAL, "There is no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, FINAL, "The token neither belongs to this principal nor may be renewed by it."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, FINAL, "Tokens cannot be asked for over this kind of connection."
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, FINAL, "Not allowed on this delegation token."
    DELEGATION_TOKEN_EXPIRED = 66, FINAL, "The delegation token has expired."
    INVALID_PRINCIPAL_TYPE = 67, FINAL, "Principals of this type are not known here."
    NON_EMPTY_GROUP = 68, FINAL, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, FINAL, "There is no such group."
    FETCH_SESSION_ID_NOT_FOUND = 70, RETRY, "The fetch session is not known, perhaps no longer."
    INVALID_FETCH_SESSION_EPOCH = 71, RETRY, "The fetch session is at another epoch."
    LISTENER_NOT_FOUND = 72, RETRY, "The leader has no listener of the name that was asked through."
    TOPIC_DELETION_DISABLED = 73, FINAL, "Deleting topics is switched off."
    FENCED_LEADER_EPOCH = 74, RETRY, "The leader epoch of the request is older than the partition's."
    UNKNOWN_LEADER_EPOCH = 75, RETRY, "The leader epoch of the request is newer than the partition's."
    UNSUPPORTED_COMPRESSION_TYPE = 76, FINAL, "This version of the API cannot carry the compression in use."
    STALE_BROKER_EPOCH = 77, FINAL, "The broker has registered anew since."
    OFFSET_NOT_AVAILABLE = 78, RETRY, "The new leader does not know the high watermark yet."
    MEMBER_ID_REQUIRED = 79, FINAL, "Join again with the member id that comes with this answer."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, RETRY, "The preferred leader cannot lead just now."
    GROUP_MAX_SIZE_REACHED = 81, FINAL, "The group is full."
    FENCED_INSTANCE_ID = 82, FINAL, "Another member has taken over this group.instance.id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, RETRY, "No replica may lead the partition just now."
    ELECTION_NOT_NEEDED = 84, RETRY, "The partition has the right leader already."
    NO_REASSIGNMENT_IN_PROGRESS = 85, FINAL, "The partition is not being reassigned."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, FINAL, "The group is still subscribed to the topic whose offsets should go."
    INVALID_RECORD = 87, FINAL, "A record does not meet the rules of its topic."
    UNSTABLE_OFFSET_COMMIT = 88, RETRY, "A transaction that commits offsets is still open."
    THROTTLING_QUOTA_EXCEEDED = 89, RETRY, "A quota is used up."
    PRODUCER_FENCED = 90, FINAL, "A newer producer uses this transactional id."
    RESOURCE_NOT_FOUND = 91, FINAL, "The request names something that does not exist."
    DUPLICATE_RESOURCE = 92, FINAL, "The request names the same thing twice."
    UNACCEPTABLE_CREDENTIAL = 93, FINAL, "The credential does not meet the rules."
    INCONSISTENT_VOTER_SET = 94, FINAL, "The two nodes do not agree on who votes."
    INVALID_UPDATE_VERSION = 95, FINAL, "The version to update to is not valid."
    FEATURE_UPDATE_FAILED = 96, FINAL, "The feature levels could not be changed."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, FINAL, "The principal of a forwarded request cannot be read."
    SNAPSHOT_NOT_FOUND = 98, FINAL, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, FINAL, "The position lies outside the snapshot."
    UNKNOWN_TOPIC_ID = 100, RETRY, "There is no topic of this id here."
    DUPLICATE_BROKER_REGISTRATION = 101, FINAL, "Another broker uses this node id."
    BROKER_ID_NOT_REGISTERED = 102, FINAL, "No broker of this id is registered."
    INCONSISTENT_TOPIC_ID = 103, RETRY, "The topic of this name has another id."
    INCONSISTENT_CLUSTER_ID = 104, FINAL, "The request is meant for another cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, FINAL, "There is no such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, RETRY, "The fetch session mixes topic ids and names."
    INELIGIBLE_REPLICA = 107, FINAL, "A replica of the new ISR may not be in it."
    NEW_LEADER_ELECTED = 108, FINAL, "The partition was changed, and has a new leader."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, FINAL, "The offset lies in tiered storage."
    FENCED_MEMBER_EPOCH = 110, FINAL, "The group went on without this member, which must rejoin with nothing."
    UNRELEASED_INSTANCE_ID = 111, FINAL, "Another member still holds this instance id."
    UNSUPPORTED_ASSIGNOR = 112, FINAL, "The group does not offer this assignor."
    STALE_MEMBER_EPOCH = 113, FINAL, "The member's epoch is out of date; the next heartbeat brings the new one."
    MISMATCHED_ENDPOINT_TYPE = 114, FINAL, "This endpoint serves another kind of request."
    UNSUPPORTED_ENDPOINT_TYPE = 115, FINAL, "This type of endpoint is not known here."
    UNKNOWN_CONTROLLER_ID = 116, FINAL, "There is no controller of this id."
    UNKNOWN_SUBSCRIPTION_ID = 117, FINAL, "The telemetry subscription is not known, perhaps no longer."
    TELEMETRY_TOO_LARGE = 118, FINAL, "More telemetry than the broker accepts at once."
    INVALID_REGISTRATION = 119, FINAL, "The controller did not accept the registration."
    TRANSACTION_ABORTABLE = 120, FINAL, "The transaction has to be aborted; the producer may then go on."
    INVALID_RECORD_STATE = 121, FINAL, "The record's delivery state does not allow this acknowledgement."
    SHARE_SESSION_NOT_FOUND = 122, RETRY, "The share session is not known, perhaps no longer."
    INVALID_SHARE_SESSION_EPOCH = 123, RETRY, "The share session is at another epoch."
    FENCED_STATE_EPOCH = 124, FINAL, "The state of the share group is at another epoch."
    INVALID_VOTER_KEY = 125, FINAL, "The request is meant for another voter."
    DUPLICATE_VOTER = 126, FINAL, "The node votes already."
    VOTER_NOT_FOUND = 127, FINAL, "The node is not among the voters."
    INVALID_REGULAR_EXPRESSION = 128, FINAL, "The regular expression does not compile."
    REBOOTSTRAP_REQUIRED = 129, FINAL, "The client's picture of the cluster is too old; bootstrap again."
    STREAMS_INVALID_TOPOLOGY = 130, FINAL, "The topology is not valid."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, FINAL, "The topology's epoch is not valid."
    STREAMS_TOPOLOGY_FENCED = 132, FINAL, "The group runs a newer topology."
    SHARE_SESSION_LIMIT_REACHED = 133, RETRY, "There are as many share sessions as there may be."
    # fmt: on
