"""Share groups (KIP-932): their members, and the state of the records that they share."""
