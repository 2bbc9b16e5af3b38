"""Gradient descent: `entry` checks, `forms` iterate, `limit` goes to the end of all steps."""
