"""Compiled code on disk is that of the sources, and its varints are those of plain Python."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import moldau
from moldau.wire import kernel
from moldau.wire.numbers import zigzag

ROOT = Path(moldau.__file__).parent
AVRO = ("wire/kernel.py", "serdes/arrow/avro_code.py")


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("wire/records/column_reader.py", ("wire/kernel.py", "wire/records/layout.py")),
        ("wire/records/column_writer.py", ("wire/kernel.py",)),
        ("serdes/arrow/avro_numbers.py", AVRO),
        ("serdes/arrow/avro_reader.py", (*AVRO, "serdes/arrow/avro_numbers.py")),
        ("serdes/arrow/avro_writer.py", (*AVRO, "serdes/arrow/avro_numbers.py")),
    ],
)
def test_a_compiled_file_changes_with_what_it_is_built_on(name: str, others: tuple[str, ...]) -> None:
    """numba takes a function from its cache while the function's own file is the same, whatever became of the functions
    and constants that it was compiled with. So each file carries a hash of those that it uses, in this order.
    """
    expected = hashlib.sha256(b"".join((ROOT / other).read_bytes() for other in others)).hexdigest()[:12]
    found = re.search(r'BUILT_ON = "(\w*)"', (ROOT / name).read_text())
    assert found and found[1] == expected, f'write BUILT_ON = "{expected}" into {name}'


@settings(deadline=None)  # the first one compiles
@given(st.integers(-(2**63), 2**63 - 1))
def test_compiled_varints_are_those_of_plain_python(number: int) -> None:
    expected = zigzag(number)
    room = np.zeros(12, np.uint8)
    end = kernel.write_long(kernel.memory(room), 1, number)
    assert (room[1:end].tobytes(), kernel.long_size(number)) == (expected, len(expected))
    assert kernel.read_long(kernel.memory(room), 1, 12) == (number, end)
    assert kernel.read_long(kernel.memory(room), 1, end - 1) == (0, -kernel.TRUNCATED)


@pytest.mark.parametrize("raw", ["ffffffffffffffffffff01", "ffffffffffffffffff03", "808080808080808080808001"])
def test_overlong_varints_are_a_problem(raw: str) -> None:
    data = np.frombuffer(bytes.fromhex(raw), np.uint8)
    assert kernel.read_long(kernel.memory(data), 0, len(data)) == (0, -kernel.BAD_NUMBER)
