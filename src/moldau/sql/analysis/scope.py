"""Names in a query: which source a column belongs to, and what unnamed columns are called."""

from __future__ import annotations

from dataclasses import dataclass, replace

from moldau.sql.catalogue import BOUNDS, PSEUDO, Catalogue, Source
from moldau.sql.errors import SqlError
from moldau.sql.printer import expression_text
from moldau.sql.tree import (
    Column,
    Deref,
    Expression,
    Item,
    Join,
    Lambda,
    Node,
    Query,
    Relation,
    SelectAll,
    SelectFields,
    SelectItem,
    StructType,
    Table,
    Type,
    children,
    rewrite,
    walk,
)


@dataclass(frozen=True, slots=True)
class Named:
    """A source of FROM under its alias."""

    alias: str
    source: Source

    def columns(self) -> dict[str, Type]:
        """Return all columns that an expression may name."""
        bounds = BOUNDS if self.source.window is not None else ()
        return dict((*self.source.schema.key, *self.source.schema.value, *PSEUDO, *bounds))


def synthetic_name(sources: tuple[Named, ...]) -> str:
    """Name the key of a join that none of the sources has."""
    taken = {name for named in sources for name in named.columns()}
    names = ("ROWKEY", *(f"ROWKEY_{n}" for n in range(1, len(taken) + 2)))
    return next(name for name in names if name not in taken)


@dataclass(frozen=True, slots=True)
class Scope:
    """The sources of a query, in order. `windowed` says that the query has a WINDOW clause."""

    sources: tuple[Named, ...]
    windowed: bool = False
    synthetic: str | None = None  # the name of a key that is that of no source
    strict: bool = False  # whether only what ksqlDB has is allowed

    @property
    def joined(self) -> bool:
        return len(self.sources) > 1

    def named(self, alias: str) -> Named:
        for source in self.sources:
            if source.alias == alias:
                return source
        raise SqlError(f"Failed to prepare statement: '{alias}' is not a valid stream/table name or alias.")

    def resolve(self, column: Column, clause: str) -> Column:
        """Give a column its source."""
        place = "" if column.at is None else f"Line: {column.at[0]}, Col: {column.at[1]}: "
        if column.source is not None:
            if column.name not in self.named(column.source).columns():
                text = expression_text(column)
                raise SqlError(f"{place}{clause} column '{text}' {_unresolved(text, clause)}")
            return column
        owners = [source.alias for source in self.sources if column.name in source.columns()]
        if not owners:
            own = self.windowed and column.name in dict(BOUNDS)
            if own or column.name == self.synthetic:
                return column
            raise SqlError(f"{place}{clause} column '{column.name}' {_unresolved(column.name, clause)}")
        if len(owners) > 1:
            options = " or ".join(f"{owner}.{column.name}" for owner in owners)
            raise SqlError(
                f"Exception while preparing statement: {place}Column '{column.name}' is ambiguous. Could be {options}."
            )
        return replace(column, source=owners[0])

    def qualify(self, expression: Expression, clause: str) -> Expression:
        """Give every column of an expression its source."""
        for node in walk(expression):
            if isinstance(node, Column) and node.source is not None:
                self.named(node.source)

        def change(node: Node) -> Node | None:
            return self.resolve(node, clause) if isinstance(node, Column) else None

        return rewrite(expression, change)

    def plain(self, expression: Expression) -> Expression:
        """Replace qualified columns by the names that rows have."""

        def change(node: Node) -> Node | None:
            return Column(self.row_name(node), at=node.at) if isinstance(node, Column) else None

        return rewrite(expression, change)

    def row_name(self, column: Column) -> str:
        return f"{column.source}_{column.name}" if self.joined and column.source is not None else column.name


def _unresolved(name: str, clause: str) -> str:
    if clause != "PARTITION BY":
        return "cannot be resolved."
    return (
        f"cannot be resolved. '{name}' must be a column in the source schema since PARTITION BY is applied on the "
        "input."
    )


def tables_of(relation: Relation) -> list[Table]:
    return [*tables_of(relation.left), relation.right] if isinstance(relation, Join) else [relation]


def scope_of(query: Query, catalogue: Catalogue) -> Scope:
    """Look up the sources of a query."""
    named: list[Named] = []
    for table in tables_of(query.source):
        if table.as_of is not None:
            raise SqlError("AS OF can stand in pull queries only, after the name of a table.")
        source = catalogue.sources.get(table.name)
        if source is None:
            raise SqlError(f"Failed to prepare statement: {table.name} does not exist.{catalogue.hint(table.name)}")
        if any(other.source.name == table.name for other in named):
            raise SqlError(
                f"N-way joins do not support multiple occurrences of the same source. Source: '{table.name}'."
                if len(named) > 1
                else f"Can not join '{table.name}' to '{table.name}': self joins are not yet supported."
            )
        if any(other.alias == table.alias for other in named):
            raise SqlError(f"Each side of the join must have a different alias: {table.alias}")
        named.append(Named(table.alias, source))
    return Scope(tuple(named), query.window is not None, strict=catalogue.strict)


@dataclass(slots=True)
class Aliases:
    """The maker of names for columns without one."""

    taken: set[str]
    count: int = 0

    def generated(self) -> str:
        while True:
            name = f"KSQL_COL_{self.count}"
            self.count += 1
            if name not in self.taken:
                self.taken.add(name)
                return name

    def field(self, name: str) -> str:
        """Name a field of a struct: by itself, or with a number if that name is taken."""
        candidate, number = name, 0
        while candidate in self.taken:
            number += 1
            candidate = f"{name}_{number}"
        self.taken.add(candidate)
        return candidate


def aliases_of(scope: Scope) -> Aliases:
    return Aliases({name for named in scope.sources for name in named.columns()})


def sanitize(query: Query, scope: Scope) -> Query:
    """Give every column its source and every expression of SELECT a name."""
    _check_repeated(query)
    _check_lambdas(query, scope)
    source = _qualified(query.source, scope)
    aliases = aliases_of(scope)
    for item in query.items:
        if isinstance(item, SelectItem) and item.alias is not None:
            aliases.taken.add(item.alias)
    items: list[Item] = [_item(item, scope, aliases) for item in query.items]

    def clause(expression: Expression | None, name: str) -> Expression | None:
        return None if expression is None else scope.qualify(expression, name)

    def clauses(expressions: tuple[Expression, ...] | None, name: str) -> tuple[Expression, ...] | None:
        return None if expressions is None else tuple(scope.qualify(e, name) for e in expressions)

    made = replace(
        query,
        items=tuple(items),
        source=source,
        where=clause(query.where, "WHERE"),
        group_by=clauses(query.group_by, "GROUP BY"),
        partition_by=clauses(query.partition_by, "PARTITION BY"),
        having=clause(query.having, "HAVING"),
        emit=query.emit or "CHANGES",
    )
    _check_repeated(made)
    return made


def _check_lambdas(query: Query, scope: Scope) -> None:
    """Refuse parameters of lambdas with the name of a column, or of a lambda around theirs."""
    columns = {name for named in scope.sources for name, _ in (*named.source.schema.key, *named.source.schema.value)}

    def check(node: Node, around: frozenset[str]) -> None:
        if isinstance(node, Lambda):
            for name in node.parameters:
                if name in columns:
                    raise SqlError(f"Lambda function argument can't be a column name: {name}")
                if name in around:
                    raise SqlError("Reusing lambda arguments in nested lambda is not allowed")
            around |= frozenset(node.parameters)
        for child in children(node):
            check(child, around)

    check(query, frozenset())


def _check_repeated(query: Query) -> None:
    """Refuse an expression that GROUP BY or PARTITION BY names twice."""
    for clause, expressions in (("GROUP BY", query.group_by), ("PARTITION BY", query.partition_by)):
        seen: set[Expression] = set()
        for each in expressions or ():
            if each in seen:
                raise SqlError(f"Duplicate {clause} expression: {expression_text(each)}")
            seen.add(each)


def _qualified(relation: Relation, scope: Scope) -> Relation:
    if isinstance(relation, Table):
        return relation
    return replace(relation, left=_qualified(relation.left, scope), on=scope.qualify(relation.on, "JOIN ON"))


def _item(item: Item, scope: Scope, aliases: Aliases) -> Item:
    match item:
        case SelectAll():
            if item.source is not None:
                scope.named(item.source)
            return item
        case SelectFields():
            return replace(item, base=scope.qualify(item.base, "SELECT"))
        case SelectItem():
            value = scope.qualify(item.value, "SELECT")
            return replace(item, value=value, alias=item.alias or _alias(value, scope, aliases))


def _alias(value: Expression, scope: Scope, aliases: Aliases) -> str:
    if isinstance(value, Column):
        shared = sum(value.name in named.columns() for named in scope.sources) > 1
        return f"{value.source}_{value.name}" if shared and value.source is not None else value.name
    if isinstance(value, Deref):
        return aliases.field(value.name)
    return aliases.generated()


def struct_fields(kind: Type | None, base: Expression) -> tuple[str, ...]:
    """Return the fields that `expression->*` gives."""
    if not isinstance(kind, StructType):
        what = f"Field {base.name}" if isinstance(base, Deref) else f"Column `{getattr(base, 'name', '')}`"
        raise SqlError(f"{what} is not a STRUCT type.")
    return tuple(f.name for f in kind.fields)
