"""The cluster's metadata: its image, and the commands that change it."""
