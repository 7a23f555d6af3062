"""What hardware and software agree on.  Everything in this package is declared once and derived
everywhere else.
"""
