"""The node: requests in, responses out, and the asyncio rim around it."""
