"""Sockets, threads and processes: everything of the broker that asyncio and the system touch."""
