"""Descent of infinitely many steps: stretches of one activation pattern, and what follows."""
