"""Searching AgentCore Memory: namespaces, requests, errors."""
