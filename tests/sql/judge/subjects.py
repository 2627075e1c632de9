"""What is compared with the JDK: for each subject random inputs, and what ours makes of them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from moldau.java import numbers, times
from moldau.java.regex import finds
from moldau.sql.casts import fit, text_to_decimal, to_decimal
from moldau.sql.codegen import decimal_operation
from moldau.sql.functions import strings
from moldau.sql.functions.times import parse_moment
from moldau.sql.tree import DecimalType

ZONES = ("UTC", "Europe/Prague", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "+02:00", "-03:30")
SEPARATORS = ("-", "/", " ", ":", ".", "'T'", "''", ", ", "")
FIELDS = (
    *("y", "yy", "yyyy", "uuuu", "u", "M", "MM", "MMM", "MMMM", "MMMMM", "LL", "d", "dd", "D", "DDD", "E", "EEEE"),
    *("EEEEE", "H", "HH", "h", "hh", "K", "k", "kk", "a", "m", "mm", "s", "ss", "S", "SSS", "SSSSSS", "A", "n", "N"),
    *("G", "Q", "QQQ", "e", "X", "XXX", "x", "xx", "Z", "ZZZZ", "O", "VV", "zzz"),
)
USUAL = (
    "yyyy-MM-dd'T'HH:mm:ss.SSS",
    "yyyy-MM-dd HH:mm:ss",
    "yyyy-MM-dd'T'HH:mm:ss.SSSX",
    "yyyy-MM-dd HH:mm:ss[.SSS][ VV]",
    "yyyyMMddHHmmssSSS",
    "dd/MMM/yyyy:HH:mm:ss Z",
    "EEE MMM dd HH:mm:ss yyyy",
    "M/d/yy h:mm a",
    "yyyy-DDD",
    "HH:mm",
    "yyyy",
    "MM-dd",
    "D",
)
ATOMS = (
    *("a", "b", ".", "\\d", "\\w", "\\s", "\\S", "[abc]", "[^a]", "[a-c&&[^b]]", "[a-b[x-z]]", "\\p{Alpha}", "\\p{L}"),
    *("\\b", "^", "$", "(a)", "(?:ab)", "(a|b)", "(?<n>x)", "\\1", "\\Qa.b\\E", "\\x41", "\\u0042", "(?=b)", "(?!a)"),
    *(
        "(?i)A",
        "(?s).",
        "\\h",
        "\\R",
        "\\Z",
        "\\z",
        "\\A",
        "[\\w.]",
        "\\.",
        "\\\\",
        "-",
        "é",
        "\\p{Lu}",
        "\\v",
        "(?<=a)",
    ),
)
REPEATS = ("", "", "", "*", "+", "?", "{2}", "{1,2}", "*?", "+?", "{0,}")
TEXT = "aab.bxAB1 é\n\r\tz_-\\0\u2028"


@dataclass(frozen=True, slots=True)
class Subject:
    """An operation of Judge.java, its inputs, and ours. ValueError and its like are refusals."""

    operation: str
    draw: Callable[[random.Random], Sequence[str]]
    ours: Callable[..., str]
    is_same: Callable[[str, str], bool] | None = None  # where answers may differ


def double(chance: random.Random) -> float:
    match chance.randrange(4):
        case 0:
            return struct.unpack(">d", chance.randbytes(8))[0]
        case 1:
            return chance.randrange(-(10**9), 10**9) / 10 ** chance.randrange(0, 12)
        case 2:
            return float(f"{chance.randrange(1, 10**6)}e{chance.randrange(-12, 12)}")
        case _:
            return chance.choice([0.0, -0.0, 1.0, 1e7, 1e-3, 9999999.999999999, 4.9e-324, 2.0**63, 2e-3])


def bits(value: float) -> str:
    return f"{struct.unpack('>Q', struct.pack('>d', value))[0]:x}"


def of_bits(text: str) -> float:
    return struct.unpack(">d", struct.pack(">Q", int(text, 16)))[0]


def is_shorter(ours: str, theirs: str) -> bool:
    """JDKs before 19 write some numbers with more digits than they need."""
    return len(ours) < len(theirs) and float(ours) == float(theirs)


def number_text(chance: random.Random) -> str:
    text = repr(double(chance)) if chance.random() < 0.7 else "".join(chance.choices("0123456789.eE+-xfpN ", k=6))
    return chance.choice(["", " ", "+"]) + text + chance.choice(["", "", "f", "d", "L", " "])


def decimal(chance: random.Random) -> tuple[Decimal, DecimalType]:
    precision = chance.randrange(1, 20)
    scale = chance.randrange(0, precision + 1)
    digits = chance.randrange(-(10**precision) + 1, 10**precision)
    if chance.random() < 0.3:
        digits %= 10
    return Decimal(digits).scaleb(-scale), DecimalType(precision, scale)


def operands(chance: random.Random) -> Sequence[str]:
    op = chance.choice("+-*/%")
    (left, of_left), (right, of_right) = decimal(chance), decimal(chance)
    to = RESULTS[op](of_left.precision, of_left.scale, of_right.precision, of_right.scale)
    return (op, f"{left:f}", f"{right:f}", str(to[0]), str(to[1]))


RESULTS: dict[str, Callable[[int, int, int, int], tuple[int, int]]] = {
    "+": lambda p, s, q, t: (max(p - s, q - t) + max(s, t) + 1, max(s, t)),
    "-": lambda p, s, q, t: (max(p - s, q - t) + max(s, t) + 1, max(s, t)),
    "*": lambda p, s, q, t: (p + q + 1, s + t),
    "/": lambda p, s, q, t: (p - s + t + max(6, s + q + 1), max(6, s + q + 1)),
    "%": lambda p, s, q, t: (min(p - s, q - t) + max(s, t), max(s, t)),
}


def decimal_result(op: str, left: str, right: str, precision: str, scale: str) -> str:
    to = DecimalType(int(precision), int(scale))
    return numbers.plain_text(decimal_operation(op, to)(Decimal(left), Decimal(right)))


def cast_given(chance: random.Random) -> Sequence[str]:
    precision = chance.randrange(1, 20)
    text = number_text(chance) if chance.random() < 0.3 else f"{decimal(chance)[0]:f}"
    return (text, str(precision), str(chance.randrange(0, precision + 1)))


def double_given(chance: random.Random) -> Sequence[str]:
    precision = chance.randrange(1, 30)
    return (repr(double(chance)), str(precision), str(chance.randrange(0, precision + 1)))


def cast_of_double(text: str, precision: str, scale: str) -> str:
    return numbers.plain_text(to_decimal(float(text), DecimalType(int(precision), int(scale))))


def pattern(chance: random.Random) -> str:
    if chance.random() < 0.3:
        return chance.choice(USUAL)
    made = "".join(chance.choice(FIELDS) + chance.choice(SEPARATORS) for _ in range(chance.randrange(1, 6)))
    return made if chance.random() < 0.9 else f"{made}[{chance.choice(FIELDS)}]"


def moment(chance: random.Random) -> int:
    far = chance.random() < 0.2
    return chance.randrange(-60 * 10**12, 250 * 10**12) if far else chance.randrange(-(10**12), 3 * 10**12)


def shown_given(chance: random.Random) -> Sequence[str]:
    """Short names of zones (zzz) are those of the tz database, which Java has only for most zones and since 1970."""
    made = pattern(chance)
    if "zzz" in made:
        return (made, str(chance.randrange(0, 3 * 10**12)), chance.choice(ZONES[:4]))
    return (made, str(moment(chance)), chance.choice(ZONES))


def parsed_given(chance: random.Random) -> Sequence[str]:
    """A text that the pattern has written, as it is or with a small fault."""
    made, zone = pattern(chance), chance.choice(ZONES)
    try:
        text = times.format_moment(made, moment(chance), times.zone_of(zone))
    except ValueError:
        text = "2020-01-01"
    if chance.random() < 0.3 and text:
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice(["", "0", "9", "x", " ", "-"]) + text[at + chance.randrange(2) :]
    return (made, text.upper() if chance.random() < 0.1 else text, chance.choice(ZONES))


def expression(chance: random.Random) -> str:
    made = "".join(chance.choice(ATOMS) + chance.choice(REPEATS) for _ in range(chance.randrange(1, 5)))
    return made if chance.random() < 0.8 else f"{made}|{chance.choice(ATOMS)}"


def searched(chance: random.Random) -> tuple[str, str]:
    """An expression and a text. What a word is at the boundary of letters beyond ASCII has changed with JDK 19."""
    made = expression(chance)
    text = "".join(chance.choices(TEXT, k=chance.randrange(0, 8)))
    return made, text.replace("é", "e") if "\\b" in made else text


def found(pattern: str, text: str) -> str:
    lines = [
        "".join(f"{one.start(group)}-{one.end(group)} " for group in range(one.re.groups + 1)) + "\n"
        for one in finds(strings.compiled(pattern), text, timeout=1)
    ]
    return "".join(lines)


SUBJECTS = {
    "double to text": Subject(
        "double_text", lambda c: (bits(double(c)),), lambda text: numbers.double_text(of_bits(text)), is_shorter
    ),
    "text to double": Subject(
        "double_parsed", lambda c: (number_text(c),), lambda text: bits(numbers.parse_double(text))
    ),
    "decimal arithmetic": Subject("decimal", operands, decimal_result),
    "text to decimal": Subject(
        "decimal_cast",
        cast_given,
        lambda text, p, s: numbers.plain_text(text_to_decimal(text, DecimalType(int(p), int(s)))),
    ),
    "decimal to decimal": Subject(
        "decimal_cast",
        lambda c: (f"{decimal(c)[0]:f}", *cast_given(c)[1:]),
        lambda text, p, s: numbers.plain_text(fit(Decimal(text), DecimalType(int(p), int(s)))),
    ),
    "double to decimal": Subject(
        "decimal_of_double", double_given, cast_of_double, lambda ours, theirs: float(ours) == float(theirs)
    ),
    "moment to text": Subject(
        "moment_text",
        shown_given,
        lambda made, ms, zone: times.format_moment(made, int(ms), times.zone_of(zone)),
    ),
    "date to text": Subject(
        "date_text",
        lambda c: (pattern(c), str(c.randrange(-200_000, 900_000))),
        lambda made, days: times.format_date(made, int(days)),
    ),
    "time to text": Subject(
        "time_text",
        lambda c: (pattern(c), str(c.randrange(0, times.MS_PER_DAY))),
        lambda made, ms: times.format_time(made, int(ms)),
    ),
    "text to moment": Subject(
        "moment_parsed", parsed_given, lambda made, text, zone: str(parse_moment(text, made, zone))
    ),
    "regular expression": Subject("regex_found", searched, found),
    "regular expression, replaced": Subject(
        "regex_replaced",
        lambda c: (*searched(c), c.choice(["x", "$0", "[$0]", "\\$", "$1", "${n}", "$", ""])),
        lambda made, text, new: strings.regexp_replace(text, made, new),
    ),
    "regular expression, split": Subject(
        "regex_split",
        searched,
        lambda made, text: "\x01".join(strings.regexp_split_to_array(text, made)),
    ),
}
