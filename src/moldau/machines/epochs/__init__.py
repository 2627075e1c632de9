"""What consumer, share and streams groups share: members with epochs, a target assignment, and heartbeats."""
