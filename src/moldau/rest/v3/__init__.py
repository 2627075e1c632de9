"""Version 3: the cluster as resources that link to each other, and records as a stream."""

from moldau.rest.v3.acls import ACLS
from moldau.rest.v3.clusters import CLUSTERS
from moldau.rest.v3.configs import CONFIGS
from moldau.rest.v3.groups import GROUPS
from moldau.rest.v3.partitions import PARTITIONS
from moldau.rest.v3.records import RECORDS
from moldau.rest.v3.topics import TOPICS

ENDPOINTS = (*CLUSTERS, *TOPICS, *PARTITIONS, *CONFIGS, *GROUPS, *ACLS, *RECORDS)
