"""pytest puts the folder of a conftest.py on the import path: so the rooms find the helpers that stand here."""
