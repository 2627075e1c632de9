"""Tests of records between a terminal and topics."""
