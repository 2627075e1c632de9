"""Java's dates, numbers and regular expressions; the judge compares the common ones with Java itself."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.connect.data import to_float32
from moldau.connect.java import calendar
from moldau.connect.java.dates import ParseError, PatternError, SimpleDateFormat
from moldau.java import numbers
from moldau.java.regex import RegexError, compile_regex, replace_first

MOMENT = 1_600_000_000_123  # 2020-09-13T12:26:40.123Z, a Sunday


@given(st.integers(-(10**11), 10**11))
def test_days_and_dates_are_inverse(day: int) -> None:
    assert calendar.day_of(*calendar.date_of(day)) == day


def test_the_calendar_is_julian_before_the_cutover() -> None:
    assert calendar.date_of(calendar.CUTOVER) == (1582, 10, 15)
    assert calendar.date_of(calendar.CUTOVER - 1) == (1582, 10, 4)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSX", "2020-09-13T12:26:40.123Z"),
        ("EEEE, d MMM yy h a", "Sunday, 13 Sep 20 12 PM"),
        ("'it''s' D/F/W/w u", "it's 257/2/3/38 7"),
        ("k:K:z", "12:0:UTC"),
    ],
)
def test_moments_are_formatted(pattern: str, text: str) -> None:
    assert SimpleDateFormat(pattern).format(MOMENT) == text


@pytest.mark.parametrize(
    ("pattern", "text", "moment"),
    [
        ("yyyy-MM-dd", "2020-01-32 and more", datetime(2020, 2, 1, tzinfo=UTC)),
        ("yyyyMMddHH", "2020010203", datetime(2020, 1, 2, 3, tzinfo=UTC)),
        ("d MMMM yyyy h a", "3 feb 2020 12 am", datetime(2020, 2, 3, tzinfo=UTC)),
        ("yyyy-MM-dd HH:mm Z", "2020-01-02 03:04 +0130", datetime(2020, 1, 2, 1, 34, tzinfo=UTC)),
        ("D yyyy", "32 2020", datetime(2020, 2, 1, tzinfo=UTC)),
        ("yy", "19", datetime(2019, 1, 1, tzinfo=UTC)),
        ("yy", "99", datetime(1999, 1, 1, tzinfo=UTC)),
        ("d MMM yyyy Z", " 4 Mar  2001  +0100", datetime(2001, 3, 3, 23, tzinfo=UTC)),
        ("yyyy S", "2020 NaN", datetime(2020, 1, 1, tzinfo=UTC)),
    ],
)
def test_texts_are_parsed_leniently(pattern: str, text: str, moment: datetime) -> None:
    parsed = SimpleDateFormat(pattern).parse(text, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    assert parsed.datetime == moment


def test_a_blank_takes_a_place_of_a_number_of_fixed_width() -> None:
    assert SimpleDateFormat("yyyyMMdd").parse(" 19780301") == SimpleDateFormat("yyyy MM dd").parse("197 80 301")


def test_dates_that_cannot_be_read_are_refused() -> None:
    for pattern, text in (
        ("yyyy-MM-dd", "x"),
        ("HH:mm", "12"),
        ("MMM", "13"),
        ("MMM", " Mar"),
        ("d MMM", "4  Mar"),
        ("z", "PST"),
    ):
        with pytest.raises(ParseError):
            SimpleDateFormat(pattern).parse(text)
    for pattern in ("b", "'open", "XXXX"):
        with pytest.raises(PatternError):
            SimpleDateFormat(pattern)
    with pytest.raises(PatternError, match="Weeks"):
        SimpleDateFormat("YYYY-ww").parse("2020-05")


@given(st.floats(width=32))
def test_the_text_of_a_float_reads_back(value: float) -> None:
    back = numbers.parse_float(numbers.float_text(value))
    assert back == value or (back != back and value != value)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1.0"), (1e7, "1.0E7"), (1234567.5, "1234567.5"), (0.001, "0.001"), (0.0001, "1.0E-4"), (-0.0, "-0.0")],
)
def test_doubles_have_the_text_of_java(value: float, text: str) -> None:
    assert numbers.double_text(value) == text


def test_a_float_has_fewer_digits_than_a_double() -> None:
    assert (numbers.float_text(to_float32(0.1)), numbers.double_text(to_float32(0.1))) == ("0.1", "0.10000000149011612")


@pytest.mark.parametrize("text", ["", "1_0", "0x10", "x", "1e", " "])
def test_what_is_not_a_number_in_java_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        numbers.parse_double(text)


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"[a-z&&[^m-p]]+", "abc", "map"),
        (r"[a-c[x-z]]+", "axz", "m"),
        (r"\Qa.b\E+", "a.b", "axb"),
        (r"(?<word>\w+)-\k<word>", "ab-ab", "ab-cd"),
        (r"a(?i)b|c", "C", "Ab"),
        (r"\p{Upper}\P{Upper}", "Ab", "AB"),
        (r"[^\d&&[^5]]", "5", "4"),
        (r"\x41\u0042\0103", "ABC", "abc"),
        (r"a{2}+b?+", "aab", "ab"),
        (r".", "x", "\u2028"),
        (r"(?s).", "\n", "xx"),
        (r"\h\R", " \r\n", "\n\n"),
        (r"\R\R", "\r\n", "\r"),
        (r"\R{2}", "\r\n\n", "\r\n"),
    ],
)
def test_patterns_mean_what_they_mean_in_java(pattern: str, good: str, bad: str) -> None:
    regex = compile_regex(pattern)
    assert regex.fullmatch(good)
    assert not regex.fullmatch(bad)


@pytest.mark.parametrize("pattern", ["(", ")", "a{", "[a", "(?<x", r"\p{L}", "(?x)a", r"\G", "*", r"(?<=a+)b", "\\"])
def test_patterns_that_cannot_be_executed_are_refused(pattern: str) -> None:
    with pytest.raises(RegexError):
        compile_regex(pattern)


def test_replacements_are_those_of_java() -> None:
    regex = compile_regex("(?<a>x+)(y)?")
    assert replace_first(regex, "-xx-", r"<$1${a}$2\$$12>") == "-<xxxx$xx2>-"
    for wrong in ("$", "${b}", "$3", "\\"):
        with pytest.raises(RegexError):
            replace_first(regex, "x", wrong)
