"""How the embedded decision model's data files are made; not part of the wheel."""
