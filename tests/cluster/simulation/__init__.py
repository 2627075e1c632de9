"""Whole clusters in one process: production nodes on simulated disks, with a network between them. See world.py."""
