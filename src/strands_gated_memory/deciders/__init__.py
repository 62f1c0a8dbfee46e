"""Decision models: the ones that ship, and how a short name becomes one."""
