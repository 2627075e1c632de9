"""The search over records: an expression (expression.py) becomes SQL, which DuckDB runs over columns (scanning.py)."""
