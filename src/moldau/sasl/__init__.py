"""SASL without I/O: mechanisms as generators, the client's half and the server's, and the JAAS lines of settings."""
