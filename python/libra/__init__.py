"""Libra in Python. So far: `libra.report`, pages from the program's results."""
