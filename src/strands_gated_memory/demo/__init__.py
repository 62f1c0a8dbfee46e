"""The demonstration: one conversation, three session managers, an emulated AgentCore Memory."""
