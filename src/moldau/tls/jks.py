"""Java's own key store format, for reading: what `keytool` wrote before Java 9, and with `-storetype JKS` still does.

A file has a magic number, a version and entries: a private key with its chain, or a trusted certificate. It ends with
a digest over the password and all of it. A key is encrypted with a stream of chained digests of its password.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import struct
from typing import NamedTuple

MAGIC = b"\xfe\xed\xfe\xed"
KEY, TRUSTED = 1, 2
VERSIONS = (1, 2)
DIGEST = 20  # bytes of SHA-1


class JksError(ValueError):
    """A file that is damaged, or a password that does not open it."""


class KeyEntry(NamedTuple):
    """A key as PKCS #8, and its chain; all of it DER."""

    key: bytes
    chain: list[bytes]


def read_jks(data: bytes, password: str, key_password: str) -> tuple[list[KeyEntry], list[bytes]]:
    """Return the keys and the trusted certificates of a store."""
    body, digest = data[:-DIGEST], data[-DIGEST:]
    expected = hashlib.sha1(_wide(password) + b"Mighty Aphrodite" + body, usedforsecurity=False).digest()
    if not hmac.compare_digest(expected, digest):
        raise JksError("its password is wrong, or it is damaged")
    try:
        return _entries(io.BytesIO(body[len(MAGIC) :]), key_password)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise JksError(f"it is damaged ({error})") from None


def _entries(file: io.BytesIO, key_password: str) -> tuple[list[KeyEntry], list[bytes]]:
    version, count = _numbers(file, ">II")
    if version not in VERSIONS:
        raise JksError(f"it has version {version}, which nobody knows")
    keys: list[KeyEntry] = []
    trusted: list[bytes] = []
    for _ in range(count):
        (tag,) = _numbers(file, ">I")
        _blob(file, ">H")  # the alias
        _numbers(file, ">Q")  # when it was made
        if tag == KEY:
            encrypted = _blob(file, ">I")
            (length,) = _numbers(file, ">I")
            chain = [_certificate(file, version) for _ in range(length)]
            keys.append(KeyEntry(_decrypted(encrypted, key_password), chain))
        elif tag == TRUSTED:
            trusted.append(_certificate(file, version))
        else:
            raise JksError(f"it has an entry of the unknown kind {tag}")
    return keys, trusted


def _certificate(file: io.BytesIO, version: int) -> bytes:
    if version > 1:
        _blob(file, ">H")  # its type, always X.509
    return _blob(file, ">I")


def _numbers(file: io.BytesIO, form: str) -> tuple[int, ...]:
    return struct.unpack(form, file.read(struct.calcsize(form)))


def _blob(file: io.BytesIO, form: str) -> bytes:
    (size,) = _numbers(file, form)
    data = file.read(size)
    if len(data) < size:
        raise JksError("it is damaged (an entry is cut off)")
    return data


def _decrypted(info: bytes, password: str) -> bytes:
    """Decrypt the octets of an EncryptedPrivateKeyInfo: a salt, the key XOR a stream, a digest."""
    sequence, _ = _element(info, 0)
    _, after = _element(sequence, 0)  # the algorithm, which is always Sun's own
    octets, _ = _element(sequence, after)
    salt, hidden, check = octets[:DIGEST], octets[DIGEST:-DIGEST], octets[-DIGEST:]
    stream, last = bytearray(), salt
    while len(stream) < len(hidden):
        last = hashlib.sha1(_wide(password) + last, usedforsecurity=False).digest()
        stream += last
    key = bytes(a ^ b for a, b in zip(hidden, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(_wide(password) + key, usedforsecurity=False).digest(), check):
        raise JksError("the password of its key is wrong")
    return key


def _element(data: bytes, position: int) -> tuple[bytes, int]:
    """Return the content of a DER element, and where the next one begins."""
    length = data[position + 1]
    position += 2
    if length & 0x80:
        count = length & 0x7F
        length = int.from_bytes(data[position : position + count])
        position += count
    return data[position : position + length], position + length


def _wide(password: str) -> bytes:
    return password.encode("utf-16-be")
