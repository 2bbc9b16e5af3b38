"""Densities."""
