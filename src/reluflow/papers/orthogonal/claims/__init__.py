"""Claims of the paper, by theme, and the hypotheses that many of them share."""

PROCESS = ("A1", "A3", "labels")
ORDER = (*PROCESS, "jumps", "untied", "flow")
LIMIT = (*ORDER, "exact")
