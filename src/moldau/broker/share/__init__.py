"""Share groups on this node: what their machines decide is carried out here."""
