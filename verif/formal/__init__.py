"""Formal proofs: harnesses (one file a subject), the list of properties, and the runner."""
