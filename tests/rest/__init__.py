"""Tests of the REST Proxy, over HTTP."""
