"""Claims of the paper, by theme."""
