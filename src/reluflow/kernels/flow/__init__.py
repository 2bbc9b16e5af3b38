"""Compiled parts of the gradient flow, one idea per file; bundles of arguments in `layout`."""
