"""Analysis: a statement and the catalogue become steps, or a refusal. It is pure: it asks no broker and no registry."""
