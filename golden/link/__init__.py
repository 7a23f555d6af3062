"""Golden model of the link, written from docs/link.md."""
