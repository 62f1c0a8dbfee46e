"""What happened, told to people and machines: counters, log lines."""
