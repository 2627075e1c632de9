"""MariaDB and MySQL: a snapshot without a lock where the server can, then the binlog."""
