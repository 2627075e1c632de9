"""The sink: rows become records in transactions, and markers say which batches are written."""
