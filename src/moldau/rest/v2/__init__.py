"""Version 2: topics, producing with embedded formats, and consumer instances."""

from moldau.rest.v2.consumers import CONSUMERS
from moldau.rest.v2.produce import PRODUCE
from moldau.rest.v2.topics import TOPICS

ENDPOINTS = (*TOPICS, *PRODUCE, *CONSUMERS)
