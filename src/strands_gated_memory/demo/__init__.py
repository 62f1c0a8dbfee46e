"""The demonstration: one conversation, three managers of a session or of memory, an emulated AgentCore Memory."""
