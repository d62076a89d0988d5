"""One file for each wire format: the request it takes, the reducer of its events, its faults. All of it pure."""
