"""What a principal may do: every API in every version, under many ACLs, beside what Apache Kafka answered."""
