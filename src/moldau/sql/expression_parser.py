"""The parser of expressions and types: recursive descent, with one loop for operators by precedence."""

from __future__ import annotations

from decimal import Decimal

from moldau.sql.cursor import Cursor
from moldau.sql.errors import ParseError
from moldau.sql.tree import (
    Arithmetic,
    ArrayType,
    Between,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    DecimalType,
    Deref,
    Expression,
    Field,
    In,
    IntervalUnit,
    IsNull,
    Lambda,
    LambdaVariable,
    Like,
    Literal,
    Logical,
    MakeArray,
    MakeMap,
    MakeStruct,
    MapType,
    NamedType,
    Not,
    Position,
    Primitive,
    Sign,
    Span,
    StructType,
    Subscript,
    Type,
    When,
)

# How tightly a binary operator binds: the right operand of an operator binds tighter than it.
BINDING = {
    "OR": 1,
    "AND": 2,
    "||": 5,
    "+": 6,
    "-": 6,
    "*": 7,
    "/": 7,
    "%": 7,
}
NOT, PREDICATE, VALUE, UNARY = 3, 4, 5, 8

COMPARISONS = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}

UNIT_WORDS = {
    word: plural
    for plural in ("YEARS", "MONTHS", "WEEKS", "DAYS", "HOURS", "MINUTES", "SECONDS", "MILLISECONDS")
    for word in (plural, plural[:-1])
}

PRIMITIVES = {
    "BOOLEAN": "BOOLEAN",
    "INT": "INTEGER",
    "INTEGER": "INTEGER",
    "BIGINT": "BIGINT",
    "DOUBLE": "DOUBLE",
    "VARCHAR": "STRING",
    "STRING": "STRING",
    "BYTES": "BYTES",
    "DATE": "DATE",
    "TIME": "TIME",
    "TIMESTAMP": "TIMESTAMP",
}


def expression(c: Cursor) -> Expression:
    """Parse any expression."""
    c.enter()
    result = _operators(c, 1)
    c.leave()
    return result


def value_expression(c: Cursor) -> Expression:
    """Parse an expression without AND, OR, NOT and predicates outside of brackets."""
    c.enter()
    result = _operators(c, VALUE)
    c.leave()
    return result


def _operators(c: Cursor, least: int) -> Expression:
    at = c.at
    if least <= NOT and c.takes("NOT"):
        c.enter()
        left: Expression = Not(_operators(c, NOT), at=at)
        c.leave()
    else:
        left = _unary(c)
    while True:
        token = c.now
        word = token.value if token.kind in ("name", "symbol") else ""
        binding = BINDING.get(word)
        if binding is not None:
            if binding < least:
                return left
            c.next()
            left = _binary(word, left, _operators(c, binding + 1), at)
        elif least <= PREDICATE and (predicate := _predicate(c, left, at)) is not None:
            left = predicate
        else:
            return left


def _binary(word: str, left: Expression, right: Expression, at: Position) -> Expression:
    if word == "AND" or word == "OR":
        return Logical(word, left, right, at=at)
    if word == "||":
        return Call("CONCAT", (left, right), at=at)
    return Arithmetic(word, left, right, at=at)


def _predicate(c: Cursor, left: Expression, at: Position) -> Expression | None:
    """Parse what follows `left` as a comparison, BETWEEN, IN, LIKE or IS; None if nothing of the kind follows."""
    word = c.now.value if c.now.kind in ("name", "symbol") else ""
    if word in COMPARISONS:
        c.next()
        return Compare(COMPARISONS[word], left, _operators(c, VALUE), at=at)
    if c.takes("IS"):
        negated = c.takes("NOT")
        if c.takes("NULL"):
            return IsNull(left, negated, at=at)
        c.expect("DISTINCT", "FROM")
        op = "IS NOT DISTINCT FROM" if negated else "IS DISTINCT FROM"
        return Compare(op, left, _operators(c, VALUE), at=at)
    negated = c.sees("NOT")
    if negated and not (c.ahead().value in ("BETWEEN", "IN", "LIKE") and c.ahead().kind == "name"):
        return None
    if negated:
        c.next()
    if c.takes("BETWEEN"):
        low = _operators(c, VALUE)
        c.expect("AND")
        result: Expression = Between(left, low, _operators(c, VALUE), at=at)
    elif c.takes("IN"):
        c.expect("(")
        result = In(left, tuple(_listed(c, ")")), at=at)
    elif c.takes("LIKE"):
        pattern = _operators(c, VALUE)
        result = Like(left, pattern, _escape(c) if c.takes("ESCAPE") else None, at=at)
    else:
        return None
    return Not(result, at=at) if negated else result


def _escape(c: Cursor) -> str:
    line, column = c.at
    text = c.string()
    if len(text) != 1:
        raise ParseError(f"line {line}:{column}: Expected single character escape but got: {text}")
    return text


def _listed(c: Cursor, end: str) -> list[Expression]:
    """Parse one or more expressions and the closing bracket."""
    items = [expression(c)]
    while c.takes(","):
        items.append(expression(c))
    c.expect(end)
    return items


def _unary(c: Cursor) -> Expression:
    at = c.at
    token = c.now
    if token.kind == "symbol" and token.value in "+-":
        c.next()
        if token.value == "-" and c.now.kind in ("integer", "decimal", "float"):
            return _postfix(c, number(c, "-"))
        c.enter()
        value = _unary(c)
        c.leave()
        return Sign("-" if token.value == "-" else "+", value, at=at)
    return _postfix(c, _primary(c))


def _postfix(c: Cursor, value: Expression) -> Expression:
    while True:
        at = c.at
        if c.takes("["):
            index = expression(c)
            c.expect("]")
            value = Subscript(value, index, at=at)
        elif c.sees("->") and not (c.ahead().value == "*" and c.ahead().kind == "symbol"):
            c.next()
            value = Deref(value, c.name(), at=at)
        else:
            return value


def number(c: Cursor, sign: str = "") -> Literal:
    """Parse a number: its kind follows from how it is written and from its size."""
    at = c.at
    token = c.next()
    if token.kind == "decimal":
        return Literal(Decimal(sign + token.value), "DECIMAL", at=at)
    if token.kind == "float":
        return Literal(float(sign + token.value), "DOUBLE", at=at)
    value = int(sign + token.value)
    if -(1 << 31) <= value < 1 << 31:
        return Literal(value, "INTEGER", at=at)
    if -(1 << 63) <= value < 1 << 63:
        return Literal(value, "BIGINT", at=at)
    raise ParseError(
        f"Failed to prepare statement: line {at[0]}:{at[1] + 1}: Invalid numeric literal: {sign}{token.value}"
    )


def literal(c: Cursor) -> Literal:
    """Parse a constant, as in WITH (...)."""
    at = c.at
    token = c.now
    if token.kind in ("integer", "decimal", "float"):
        return number(c)
    if token.kind == "string":
        c.next()
        return Literal(token.value, "STRING", at=at)
    if c.sees("-") and c.ahead().kind in ("integer", "decimal", "float"):
        c.next()
        return number(c, "-")
    for word, value in (("TRUE", True), ("FALSE", False)):
        if c.takes(word):
            return Literal(value, "BOOLEAN", at=at)
    if c.takes("NULL"):
        return Literal(None, "NULL", at=at)
    if token.kind == "name" and token.value in ("DATE", "TIME", "TIMESTAMP") and c.ahead().kind == "string":
        c.next()
        return Literal(c.string(), token.value, at=at)
    c.fail("literal")
    return None


def _primary(c: Cursor) -> Expression:
    at = c.at
    token = c.now
    follows = c.ahead()
    if token.kind in ("integer", "decimal", "float", "string"):
        return literal(c)
    if token.kind == "symbol" and token.value == "(":
        c.next()
        result = expression(c)
        c.expect(")")
        return result
    if token.kind == "name":
        if token.value in ("NULL", "TRUE", "FALSE") or (follows.kind == "string" and token.value in PRIMITIVES):
            return literal(c)
        special = _SPECIAL.get(token.value)
        if special is not None and special[0] == (follows.value if follows.kind == "symbol" else ""):
            c.next()
            return special[1](c, at)
        if token.value == "CASE":
            c.next()
            return _case(c, at)
    if follows.kind == "symbol" and follows.value == "(" and (token.kind == "quoted" or token.kind == "name"):
        name = c.name() if token.value not in ("REPLACE", "EXPLODE") else c.next().value
        return _call(c, name.upper(), at)
    return column(c)


def column(c: Cursor) -> Column | LambdaVariable:
    """Parse `name` or `source.name`."""
    at = c.at
    name = c.name()
    if any(name in names for names in c.bound):
        return LambdaVariable(name, at=at)
    if c.sees(".") and not (c.ahead().value == "*" and c.ahead().kind == "symbol"):
        c.next()
        return Column(c.name(), name, at=at)
    return Column(name, at=at)


def _call(c: Cursor, name: str, at: Position) -> Call:
    c.expect("(")
    if c.takes(")") or c.takes("*", ")"):
        return Call(name, (), at=at)
    args = [_unit(c) or _argument(c)]
    while c.takes(","):
        args.append(_argument(c))
    c.expect(")")
    return Call(name, tuple(args), at=at)


def _unit(c: Cursor) -> IntervalUnit | None:
    """Take a unit of time, which only the first of several arguments can be."""
    at = c.at
    token = c.now
    if token.kind != "name" or token.value not in UNIT_WORDS or c.ahead().value != ",":
        return None
    c.next()
    return IntervalUnit(UNIT_WORDS[token.value], at=at)


def _argument(c: Cursor) -> Expression:
    at = c.at
    parameters = _parameters(c)
    if parameters is None:
        return expression(c)
    c.bound.append(frozenset(parameters))
    body = expression(c)
    c.bound.pop()
    return Lambda(parameters, body, at=at)


def _parameters(c: Cursor) -> tuple[str, ...] | None:
    """Take `x =>` or `(x, y) =>` if that comes next."""
    if c.now.kind in ("name", "quoted") and c.ahead().value == "=>":
        name = c.name()
        c.next()
        return (name,)
    if not c.sees("("):
        return None
    ahead = 1
    names: list[str] = []
    while c.ahead(ahead).kind in ("name", "quoted") and c.ahead(ahead + 1).value in (",", ")"):
        names.append(c.ahead(ahead).value)
        if c.ahead(ahead + 1).value == ")":
            if c.ahead(ahead + 2).value != "=>":
                return None
            c.place += ahead + 3
            return tuple(names)
        ahead += 2
    return None


def _cast(c: Cursor, at: Position) -> Cast:
    c.expect("(")
    value = expression(c)
    c.expect("AS")
    kind = type_name(c)
    c.expect(")")
    return Cast(value, kind, at=at)


def _case(c: Cursor, at: Position) -> Case:
    operand = None if c.sees("WHEN") else expression(c)
    whens: list[When] = []
    while c.sees("WHEN"):
        when_at = c.at
        c.next()
        condition = expression(c)
        c.expect("THEN")
        whens.append(When(condition, expression(c), at=when_at))
    if not whens:
        c.fail("'WHEN'")
    default = expression(c) if c.takes("ELSE") else None
    c.expect("END")
    return Case(operand, tuple(whens), default, at=at)


def _make_array(c: Cursor, at: Position) -> MakeArray:
    c.expect("[")
    return MakeArray(() if c.takes("]") else tuple(_listed(c, "]")), at=at)


def _make_map(c: Cursor, at: Position) -> MakeMap:
    c.expect("(")
    pairs: list[tuple[Expression, Expression]] = []
    while not c.takes(")"):
        if pairs:
            c.expect(",")
        key = expression(c)
        c.expect(":=")
        pairs.append((key, expression(c)))
    return MakeMap(tuple(pairs), at=at)


def _make_struct(c: Cursor, at: Position) -> MakeStruct:
    c.expect("(")
    fields: list[tuple[str, Expression]] = []
    while not c.takes(")"):
        if fields:
            c.expect(",")
        name = c.name()
        c.expect(":=")
        fields.append((name, expression(c)))
    return MakeStruct(tuple(fields), at=at)


# The words that begin an expression of their own if this symbol follows.
_SPECIAL = {
    "CAST": ("(", _cast),
    "ARRAY": ("[", _make_array),
    "MAP": ("(", _make_map),
    "STRUCT": ("(", _make_struct),
}


def span(c: Cursor) -> Span:
    """Parse a length of time: `5 MINUTES`."""
    at = c.at
    count = c.integer()
    token = c.now
    if token.kind != "name" or token.value not in UNIT_WORDS or UNIT_WORDS[token.value] == "WEEKS":
        c.fail("{DAYS, HOURS, MINUTES, SECONDS, MILLISECONDS}")
    c.next()
    return Span(count, UNIT_WORDS[token.value], at=at)


def type_name(c: Cursor) -> Type:
    """Parse a type."""
    c.enter()
    result = _plain_type(c)
    c.leave()
    while c.sees("ARRAY"):
        c.next()
        result = ArrayType(result)
    return result


def _plain_type(c: Cursor) -> Type:
    bracket = c.ahead().value if c.ahead().kind == "symbol" else ""
    if bracket == "<" and c.takes("ARRAY", "<"):
        item = type_name(c)
        c.expect(">")
        return ArrayType(item)
    if bracket == "<" and c.takes("MAP", "<"):
        key = type_name(c)
        c.expect(",")
        value = type_name(c)
        c.expect(">")
        return MapType(key, value)
    if c.takes("STRUCT", "<>"):
        return StructType(())
    if bracket == "<" and c.takes("STRUCT", "<"):
        return StructType(tuple(_struct_fields(c)))
    if c.takes("DECIMAL", "("):
        precision = c.integer()
        c.expect(",")
        scale = c.integer()
        c.expect(")")
        return _decimal(precision, scale)
    name = c.name()
    if c.takes("("):
        if c.now.kind != "integer" and not c.sees("STRING"):
            c.fail("{'STRING', INTEGER_VALUE}")
        c.next()
        c.expect(")")
    primitive = PRIMITIVES.get(name.upper())
    return Primitive(primitive) if primitive else NamedType(name)


def _struct_fields(c: Cursor) -> list[Field]:
    fields: list[Field] = []
    while not c.takes(">"):
        if fields:
            c.expect(",")
        name = c.name()
        fields.append(Field(name, type_name(c)))
    return fields


def _decimal(precision: int, scale: int) -> DecimalType:
    if precision < 1:
        raise ParseError(f"DECIMAL precision must be >= 1: DECIMAL({precision},{scale})")
    if scale > precision:
        raise ParseError(f"DECIMAL precision must be >= scale: DECIMAL({precision},{scale})")
    return DecimalType(precision, scale)
