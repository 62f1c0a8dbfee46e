"""Thresholds and calibrators from labels, and a policy tried on recorded turns."""
