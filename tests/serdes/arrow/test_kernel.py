"""Compiled code on disk is that of the sources."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from moldau.serdes.arrow import kernel

HERE = Path(kernel.__file__).parent
COMMON = ("avro_code.py", "kernel.py")


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("avro_numbers.py", COMMON),
        ("avro_reader.py", (*COMMON, "avro_numbers.py")),
        ("avro_writer.py", (*COMMON, "avro_numbers.py")),
    ],
)
def test_a_compiled_file_changes_with_what_it_is_built_on(name: str, others: tuple[str, ...]) -> None:
    """numba takes a function from its cache while the function's own file is the same, whatever became of the functions
    and constants that it was compiled with. So each file carries a hash of those that it uses, in this order.
    """
    expected = hashlib.sha256(b"".join((HERE / other).read_bytes() for other in others)).hexdigest()[:12]
    found = re.search(r'BUILT_ON = "(\w*)"', (HERE / name).read_text())
    assert found and found[1] == expected, f'write BUILT_ON = "{expected}" into {name}'
