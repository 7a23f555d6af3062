"""Builds simulation models of the chip, runs programs on them and compares them with the golden
model.
"""
