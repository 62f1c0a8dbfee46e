"""Thresholds and heads from labels, and a policy tried on recorded turns."""
