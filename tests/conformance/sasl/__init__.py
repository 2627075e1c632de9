"""What Apache Kafka answers to SASL in every order, recorded, and compared with what we answer."""
