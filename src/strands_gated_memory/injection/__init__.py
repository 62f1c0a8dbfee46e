"""Showing the recall block to the model."""
