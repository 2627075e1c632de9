"""KRaft as Apache Kafka speaks it: a broker's life, leading and following partitions, the quorum. No I/O of its own."""
