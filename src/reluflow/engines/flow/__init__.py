"""Gradient flow: exact between events, event by event; one idea per file."""
