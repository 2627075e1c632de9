"""What pages show, made from answers of the cluster and the registry. Pure: no I/O, no clock, no NiceGUI."""
