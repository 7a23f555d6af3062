"""The vector engine, and the front end that the scalar engine shares with it."""
