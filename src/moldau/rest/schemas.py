"""The documents that the REST Proxy takes and gives; `moldau.http.documents` says what a row means."""

from __future__ import annotations

from moldau.admin.acls import OPERATIONS, PATTERNS, PERMISSIONS, RESOURCES, UNKNOWN
from moldau.http import Documents
from moldau.rest.shapes import KNOWN

FORMAT = "{BINARY,JSON,STRING,AVRO,JSONSCHEMA,PROTOBUF}"
STRATEGY = "{TOPIC_NAME,RECORD_NAME,TOPIC_RECORD_NAME}"
ACL_TABLES = {"resource_type": RESOURCES, "pattern_type": PATTERNS, "operation": OPERATIONS, "permission": PERMISSIONS}
ACL_WORDS = {field: (UNKNOWN, *table) for field, table in ACL_TABLES.items()}
RESOURCE, PATTERN, OPERATION, PERMISSION = (f"{{{','.join(words)}}}" for words in ACL_WORDS.values())

TAKEN = {
    "ConfigValue": "value?:string|null",
    "ConfigChange": "name:string value?:string|null operation?:{SET,DELETE}|null",
    "ConfigChanges": "data:[@ConfigChange] validate_only?:boolean",
    "NewTopic": "topic_name:string partitions_count?:int32 replication_factor?:int16 replicas_assignments?:assignments "
    "configs?:[@NewConfig] validate_only?:boolean",
    "NewConfig": "name:string value?:string|null",
    "PartitionsCount": "partitions_count:int32",
    "NewAcl": f"resource_type:{RESOURCE} resource_name:string pattern_type:{PATTERN} principal:string host:string "
    f"operation:{OPERATION} permission:{PERMISSION}",
    "NewAcls": "data:[@NewAcl]",
    "NewRecord": "partition_id?:int32|null headers?:[@NewHeader]|null key?:@NewData|null value?:@NewData|null "
    "timestamp?:time|null",
    "NewHeader": "name:name value?:base64|null",
    "NewData": f"type?:{FORMAT}|null subject?:string|null subject_name_strategy?:{STRATEGY}|null schema_id?:count|null "
    "schema_version?:count|null schema?:string|null data?:any",
    "NewRecords": "entries:[@NewEntry]",
    "NewEntry": "id:string +NewRecord",
    "V2Record": "key?:any value?:any partition?:count|null",
    "V2Records": "records:some[@V2Record] key_schema?:string|null key_schema_id?:numeral|null "
    "value_schema?:string|null value_schema_id?:numeral|null",
    "NewConsumer": "id?:name|null name?:name|null format?:string|null auto.offset.reset?:string|null "
    "auto.commit.enable?:text fetch.min.bytes?:text consumer.request.timeout.ms?:text "
    "topic.metadata.refresh.interval.ms?:text",
    "Subscription": "topics?:[name]|null topic_pattern?:name|null",
    "V2Partition": "topic:name partition:count",
    "V2Partitions": "partitions:[@V2Partition]",
    "V2Offset": "topic:name partition:count offset:offset metadata?:name|null",
    "V2Offsets": "offsets:[@V2Offset]",
}
GIVEN = {
    "Error": "error_code:int32 message:string|null",
    "Link": "related:string",
    "Metadata": "self:string resource_name?:string|null next?:string|null",
    "Resource": "kind:string metadata:@Metadata cluster_id:string",
    "Cluster": "+Resource controller?:@Link acls:@Link brokers:@Link broker_configs:@Link consumer_groups:@Link "
    "topics:@Link partition_reassignments:@Link",
    "Broker": "+Resource broker_id:int32 host:string|null port:int32|null rack:string|null configs:@Link "
    "partition_replicas:@Link",
    "Topic": "+Resource topic_name:string is_internal:boolean replication_factor:int32 partitions_count:int32 "
    "partitions:@Link configs:@Link partition_reassignments:@Link authorized_operations?:[string]",
    "Partition": "+Resource topic_name:string partition_id:int32 leader?:@Link replicas:@Link reassignment:@Link",
    "PartitionOffsets": "+Resource topic_name:string partition_id:int32 earliest_offset?:int64 latest_offset?:int64",
    "Replica": "+Resource topic_name:string partition_id:int32 broker_id:int32 is_leader:boolean is_in_sync:boolean "
    "broker:@Link",
    "Reassignment": "+Resource topic_name:string partition_id:int32 adding_replicas:[int32] removing_replicas:[int32] "
    "replicas:@Link",
    "Synonym": "name:string value:string|null source:string",
    "Config": "+Resource name:string value:string|null is_default:boolean is_read_only:boolean is_sensitive:boolean "
    "source:string synonyms:[@Synonym]",
    "ClusterConfig": "+Config config_type:string",
    "BrokerConfig": "+Config broker_id:int32",
    "TopicConfig": "+Config topic_name:string",
    "Group": "+Resource consumer_group_id:string is_simple:boolean partition_assignor:string state:string type:string "
    "is_mixed_consumer_group:boolean coordinator:@Link consumers:@Link lag_summary:@Link",
    "Consumer": "+Resource consumer_group_id:string consumer_id:string instance_id:string|null client_id:string "
    "assignments:@Link",
    "Assignment": "+Resource consumer_group_id:string consumer_id:string topic_name:string partition_id:int32 "
    "partition:@Link lag:@Link",
    "Lag": "+Resource consumer_group_id:string topic_name:string partition_id:int32 current_offset:int64 "
    "log_end_offset:int64 lag:int64 consumer_id:string instance_id:string|null client_id:string",
    "LagSummary": "+Resource consumer_group_id:string max_lag_consumer_id:string max_lag_instance_id:string|null "
    "max_lag_client_id:string max_lag_topic_name:string max_lag_partition_id:int32 max_lag:int64 total_lag:int64 "
    "max_lag_consumer:@Link max_lag_partition:@Link",
    "Acl": "+Resource resource_type:string resource_name:string pattern_type:string principal:string host:string "
    "operation:string permission:string",
    "Deleted": "data:[@Acl]",
    "WrittenData": "type:string size:int32 subject?:string schema_id?:int32 schema_version?:int32|null",
    "Written": "error_code:int32 message?:string|null cluster_id?:string topic_name?:string partition_id?:int32 "
    "offset?:int64 timestamp?:string|null key?:@WrittenData value?:@WrittenData",
    "WrittenEntry": "id:string cluster_id:string topic_name:string partition_id:int32 offset:int64 "
    "timestamp:string|null key?:@WrittenData value?:@WrittenData",
    "FailedEntry": "id:string error_code:int32 message:string|null",
    "WrittenBatch": "successes:[@WrittenEntry] failures:[@FailedEntry]",
    "Names": "[string]",
    "V2Brokers": "brokers:[int32]",
    "V2Replica": "broker:int32 leader:boolean in_sync:boolean",
    "V2PartitionState": "partition:int32 leader:int32 replicas:[@V2Replica]",
    "V2Topic": "name:string configs:object partitions:[@V2PartitionState]",
    "V2PartitionStates": "[@V2PartitionState]",
    "V2OffsetRange": "beginning_offset:int64 end_offset:int64",
    "V2WrittenOffset": "partition:int32|null offset:int64|null error_code:int32|null error:string|null",
    "V2Written": "offsets:[@V2WrittenOffset] key_schema_id:int32|null value_schema_id:int32|null",
    "V2Instance": "instance_id:string base_uri:string",
    "V2Subscribed": "topics:[string]",
    "V2Consumed": "topic:string key:any value:any partition:int32 offset:int64",
    "V2Records_": "[@V2Consumed]",
    "V2Committed": "offsets:[@V2CommittedOffset]",
    "V2CommittedOffset": "topic:string partition:int32 offset:int64 metadata:string|null",
    "V2Assigned": "partitions:[@V2Partition]",
    "Nothing": "",
}
LISTED = ("Cluster", "Broker", "Topic", "Partition", "Replica", "Reassignment", "ClusterConfig", "BrokerConfig")
LISTED += ("TopicConfig", "Group", "Consumer", "Assignment", "Lag", "Acl")
GIVEN |= {f"{name}List": f"kind:string metadata:@Metadata data:[@{name}]" for name in LISTED}

DOCUMENTS = Documents(TAKEN, GIVEN, KNOWN)
