"""The layout of a record batch, format 2: a header of 61 bytes, then the records.

```
base_offset 8 | length 4 | leader_epoch 4 | magic 1 | crc 4 | attributes 2 | last_offset_delta 4
| base_timestamp 8 | max_timestamp 8 | producer_id 8 | producer_epoch 2 | base_sequence 4 | count 4 | records
```
`length` counts from the leader epoch on. The CRC-32C covers everything from the attributes on, so a broker sets base
offset and leader epoch without computing it again. Only the records are compressed.
"""

from struct import Struct

HEADER = Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
LENGTH_START = 12  # what `length` counts begins here
CRC_START = 21  # what the CRC covers begins here
MAGIC = 2

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40  # the base timestamp is the delete horizon (KIP-534)

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
