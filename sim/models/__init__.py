"""Models of what lies outside the design under test."""
