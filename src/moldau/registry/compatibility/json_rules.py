"""The types of differences between JSON Schemas: which are compatible, and what is said about the others."""

from __future__ import annotations

import re

KEYWORDS = {
    "string": "maxLength minLength",
    "number": "maximum minimum exclusiveMaximum exclusiveMinimum",
    "object": "maxProperties minProperties",
    "array": "maxItems minItems maxContains minContains",
}
# kind -> keyword -> how its differences are called
BOUNDED = {
    kind: {keyword: re.sub("(?=[A-Z])", "_", keyword).upper() for keyword in keywords.split()}
    for kind, keywords in KEYWORDS.items()
}
NAMES = [name for names in BOUNDED.values() for name in names.values()]
UPPER = [name for name in NAMES if "MAX" in name]
LOWER = [name for name in NAMES if "MIN" in name]

ALONE = (
    "COMBINED_TYPE_EXTENDED", "ENUM_ARRAY_EXTENDED", "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", "MULTIPLE_OF_REDUCED",
    "MULTIPLE_OF_REMOVED", "NOT_TYPE_NARROWED", "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", "PATTERN_REMOVED",
    "PRODUCT_TYPE_NARROWED", "REQUIRED_ATTRIBUTE_REMOVED", "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED",
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL", "SCHEMA_REMOVED", "SUM_TYPE_EXTENDED",
    "TYPE_EXTENDED", "UNIQUE_ITEMS_REMOVED",
)  # fmt: skip
STRICT = frozenset(
    (
        *(f"{name}_REMOVED" for name in NAMES),
        *(f"{name}_INCREASED" for name in UPPER),
        *(f"{name}_DECREASED" for name in LOWER),
        *(f"{what}_CHANGED" for what in ("ID", "DESCRIPTION", "TITLE", "DEFAULT")),
        *(f"DEPENDENCY_{what}" for what in ("ARRAY_NARROWED", "ARRAY_REMOVED", "SCHEMA_REMOVED")),
        *(
            f"{which}_{what}_{change}"
            for which in ("ADDITIONAL", "UNEVALUATED")
            for what in ("PROPERTIES", "ITEMS")
            for change in ("ADDED", "EXTENDED")
        ),
        *(
            f"{what}_{change}_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
            for what in ("PROPERTY", "ITEM")
            for change in ("ADDED", "REMOVED")
        ),
        *(f"{what}_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL" for what in ("PROPERTY", "ITEM")),
        *(f"{what}_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL" for what in ("PROPERTY", "ITEM")),
        *(f"{what}_REMOVED_FROM_OPEN_CONTENT_MODEL" for what in ("PROPERTY", "ITEM")),
        *ALONE,
    )
)
LENIENT = STRICT | {
    "ADDITIONAL_PROPERTIES_NARROWED",
    "ADDITIONAL_PROPERTIES_REMOVED",
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
    "UNEVALUATED_PROPERTIES_NARROWED",
    "UNEVALUATED_PROPERTIES_REMOVED",
}
# The end of a type's name -> what is said; the first that fits counts.
SENTENCES = {
    "REMOVED_FROM_CLOSED_CONTENT_MODEL": "The {reader} schema has a closed content model and lacks '{path}' of the "
    "{writer} schema",
    "REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": "The {reader} schema lacks '{path}' of the {writer} schema, "
    "and its partially open content model does not cover it",
    "ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": "The {reader} schema has '{path}', which the partially open "
    "content model of the {writer} schema does not cover",
    "ADDED_TO_OPEN_CONTENT_MODEL": "The {reader} schema has '{path}', for which the {writer} schema with its open "
    "content model takes anything",
    "ADDED_TO_UNOPEN_CONTENT_MODEL": "The {reader} schema requires '{path}', which the {writer} schema does not have",
    "SUBSCHEMAS_CHANGED": "Of the combined types at path '{path}' not all in the {writer} schema have one in the "
    "{reader} schema that takes their data",
    "TYPE_CHANGED": "The type at path '{path}' of the {reader} schema is not that of the {writer} schema",
    "TYPE_NARROWED": "The type at path '{path}' of the {reader} schema takes less than that of the {writer} schema",
    "TYPE_EXTENDED": "The type at path '{path}' of the {reader} schema asks for more than that of the {writer} schema",
    "INCREASED": "The value at path '{path}' of the {reader} schema is more than in the {writer} schema",
    "DECREASED": "The value at path '{path}' of the {reader} schema is less than in the {writer} schema",
    "EXPANDED": "The value at path '{path}' of the {reader} schema is a multiple of that in the {writer} schema",
    "NARROWED": "The keyword at path '{path}' of the {reader} schema takes less than in the {writer} schema",
    "EXTENDED": "The keyword at path '{path}' of the {reader} schema asks for more than in the {writer} schema",
    "CHANGED": "The value at path '{path}' of the {reader} schema is not that of the {writer} schema",
    "ADDED": "The keyword at path '{path}' of the {reader} schema is missing in the {writer} schema",
    "REMOVED": "What the {writer} schema allows at path '{path}' the {reader} schema does not allow",
}
