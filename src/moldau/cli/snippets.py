"""Settings of clients of a secured platform, ready to be copied, by the names of the clients."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

LIBRDKAFKA = """bootstrap.servers={address}
security.protocol=SASL_SSL
sasl.mechanism={mechanism}
sasl.username={user}
sasl.password={password}
ssl.ca.location={ca}
"""
SNIPPETS: Mapping[str, str] = {
    "confluent-kafka": """from confluent_kafka import Producer

producer = Producer({{
    "bootstrap.servers": "{address}",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "{mechanism}",
    "sasl.username": "{user}",
    "sasl.password": "{password}",
    "ssl.ca.location": "{ca}",
}})
""",
    "kafka-python": """from kafka import KafkaProducer

producer = KafkaProducer(
    bootstrap_servers="{address}",
    security_protocol="SASL_SSL",
    sasl_mechanism="{mechanism}",
    sasl_plain_username="{user}",
    sasl_plain_password="{password}",
    ssl_cafile="{ca}",
)
""",
    "aiokafka": """import ssl

from aiokafka import AIOKafkaProducer

producer = AIOKafkaProducer(
    bootstrap_servers="{address}",
    security_protocol="SASL_SSL",
    sasl_mechanism="{mechanism}",
    sasl_plain_username="{user}",
    sasl_plain_password="{password}",
    ssl_context=ssl.create_default_context(cafile="{ca}"),
)
""",
    "java": """bootstrap.servers={address}
security.protocol=SASL_SSL
ssl.truststore.type=PEM
ssl.truststore.location={ca}
sasl.mechanism={mechanism}
sasl.jaas.config={module} required username="{user}" password="{password}";
""",
    "kcat": LIBRDKAFKA,
    "spark": """options = {{
    "kafka.bootstrap.servers": "{address}",
    "kafka.security.protocol": "SASL_SSL",
    "kafka.ssl.truststore.type": "PEM",
    "kafka.ssl.truststore.location": "{ca}",
    "kafka.sasl.mechanism": "{mechanism}",
    "kafka.sasl.jaas.config": '{module} required username="{user}" password="{password}";',
}}
""",
    "franz-go": """pem, _ := os.ReadFile("{ca}")
roots := x509.NewCertPool()
roots.AppendCertsFromPEM(pem)
client, err := kgo.NewClient(
	kgo.SeedBrokers("{address}"),
	kgo.DialTLSConfig(&tls.Config{{RootCAs: roots}}),
	kgo.SASL(scram.Auth{{User: "{user}", Pass: "{password}"}}.AsSha512Mechanism()),
)
""",
    "http": """curl --cacert {ca} --user '{user}:{password}' {registry}/subjects
""",
}
FILES = {"kcat": "kcat.conf", "java": "java.properties", "franz-go": "franz-go.go", "http": "http.sh"}


def snippets(
    address: str, user: str, password: str, ca: Path, registry: str, mechanism: str = "SCRAM-SHA-512"
) -> dict[str, str]:
    """Return the text for each client, by the name of a file for it."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    values = {"address": address, "user": user, "password": password, "ca": ca, "module": module}
    values |= {"mechanism": mechanism, "registry": registry}
    return {FILES.get(name, f"{name}.py"): text.format(**values) for name, text in SNIPPETS.items()}
