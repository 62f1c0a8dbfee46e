"""Ways to a decision model: each sends one document and returns one."""
