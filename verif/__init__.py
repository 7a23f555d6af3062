"""Reusable verification: vectors, oracles, drivers, checkers."""
