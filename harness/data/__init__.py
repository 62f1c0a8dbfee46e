"""Labelled data and where it comes from: data sets, recorded turns, labels, memory stores; their JSON files."""
