"""The decision model that ships with the package: a small sentence encoder and three heads, on CPU.

English only, and it says so: what it cannot read it abstains from. Nothing here opens a connection, and
importing it loads nothing heavy.
"""
