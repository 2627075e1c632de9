"""What goes wrong in Connect, by its classes: status, dead letters and `errors.tolerance` tell them apart."""

from __future__ import annotations

ERRORS = "org.apache.kafka.connect.errors."


class ConnectError(Exception):
    """A failure of a connector, a converter or a transform; `java_name` is the class that Connect would report."""

    java_name = ERRORS + "ConnectException"


class DataError(ConnectError):
    """A value that does not fit its schema, or that an operation cannot take."""

    java_name = ERRORS + "DataException"


class SchemaBuilderError(DataError):
    """A schema that cannot exist."""

    java_name = ERRORS + "SchemaBuilderException"


class SchemaProjectorError(DataError):
    """A value that cannot be read with another schema."""

    java_name = ERRORS + "SchemaProjectorException"


class RetriableError(ConnectError):
    """A failure that may pass: what failed is tried again."""

    java_name = ERRORS + "RetriableException"


class GoneError(ConnectError):
    """What a task runs on is gone: no record is at fault, and none may be left out for it."""


class NotFoundError(ConnectError):
    """A thing that does not exist."""

    java_name = ERRORS + "NotFoundException"


class SerializationError(Exception):
    """Bytes that cannot be read, or a value that cannot be written."""

    java_name = "org.apache.kafka.common.errors.SerializationException"


class ConfigError(Exception):
    """A setting that is missing, has the wrong type or a value that is not allowed."""

    java_name = "org.apache.kafka.common.config.ConfigException"


class ArgumentError(ValueError):
    """An argument that makes no sense, such as a field that a schema does not have."""

    java_name = "java.lang.IllegalArgumentException"


def invalid(name: str, value: object, reason: str | None = None) -> ConfigError:
    """Describe a value that is not allowed, in Kafka's words."""
    return ConfigError(f"Invalid value {value} for configuration {name}" + (f": {reason}" if reason else ""))


def java_name(error: BaseException) -> str:
    """Name the class of an error as Connect does; an error of Python has its own name."""
    return getattr(error, "java_name", None) or f"{type(error).__module__}.{type(error).__qualname__}"
