"""What a schema refers to: found through the store, and through what those schemas refer to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from moldau.registry import names
from moldau.registry.store import LATEST, Store
from moldau.serdes.schemas import Reference, SchemaError

MOST_REFERENCES = 1_000


@dataclass(slots=True)
class Referenced:
    """The texts of all referenced schemas by the names of their references; what others need comes first.

    `new` schemas cannot refer to versions that are soft deleted. With `strict` a name must mean the same version
    wherever it is used. References cannot form a circle in the store, because each must be there before it is referred
    to; the bound is for a topic that another wrote.
    """

    store: Store
    new: bool = False
    strict: bool = False
    texts: dict[str, str] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)
    _path: list[tuple[str, int]] = field(default_factory=list)

    def add(self, parent: str, reference: Reference) -> Reference:
        """Add a reference of `parent`, and return it with the number of the version that it means."""
        subject = names.within(parent, reference.subject)
        target = self.store.version(subject, reference.version, deleted=not self.new)
        if target is None:
            raise SchemaError(f'No schema reference found for subject "{subject}" and version {reference.version}')
        place = (subject, target.version)
        if place in self._path or len(self._path) > MOST_REFERENCES:
            raise SchemaError(f'the references of subject "{subject}" lead back to it')
        if self._numbers.setdefault(reference.name, target.version) != target.version and self.strict:
            raise SchemaError(f'"{reference.name}" is referred to in two versions')
        if reference.name not in self.texts:
            self._path.append(place)
            for deeper in target.references:
                self.add(target.subject, deeper)
            self._path.pop()
            self.texts.setdefault(reference.name, target.schema)
        if len(self.texts) > MOST_REFERENCES:
            raise SchemaError(f"more than {MOST_REFERENCES} schemas are referenced")
        return replace(reference, version=target.version) if reference.version == LATEST else reference
