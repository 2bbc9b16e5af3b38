"""Claims of the paper, by theme, and the hypotheses that many of them share."""

FIRST_PHASE = ("data", "1(i)", "balanced", "1(ii)", "1(iv)")
ALL = (*FIRST_PHASE, "1(iii)", "flow")
