"""The chip in Amaranth: one folder per engine.  Imports isa only."""
