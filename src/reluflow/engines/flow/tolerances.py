"""All tolerances of the flow in one table, with the reason of each. All are pure numbers.

Lengths of points, sizes of labels and the rate are near one in the solver's units (`units`).
"""

from __future__ import annotations

# a pre-activation this far below |(a, w)| is on the plane: rounding of the projection onto it
ON_PLANE = 1e-13
# ... or, if only hidden weights are trained, what it moves in so many of the clock's smallest steps
TICKS = 4.0
# an event that a step must end at is reached to this share of rtol, an angle; not below rounding
EVENT, EVENT_FLOOR = 0.01, 1e-12
# a slide ended when its weight was outside [0, 1] by this share of rtol; not below rounding
RELEASE, RELEASE_FLOOR = 0.05, 1e-11
# ... if it comes to be outside by this share of rtol, in force and in force times step: a weight
# that settles at an end of [0, 1] would be released and caught again. More would be too much: steps
# near a saddle are long, the slide would go on for as long, and the saddle multiplies what that
# changes
SLACK, SLACK_FLOOR = 0.05, 1e-11
# a pre-activation is known to this times rtol, a share of the neuron: nearer to a plane that
# repels it the error decides on which side it goes on
KNOWN = 0.3
# share of the tolerance that all crossings inside a step may use
CROSSINGS = 0.2
# what a step misses of a crossing inside it: this share of size x boost^2 (a kink in a quadrature)
MISSED = 0.05
# a kink in the last share q of a step is missed there: q^2 / 2 against MISSED for one anywhere
LATE = 0.1
# rounding of the forces, times the step, stays below this share of rtol
NOISE = 0.03
# the iteration of a step ends when changes are below this share of rtol
SOLVED = 1e-3
# below this product of step and stiffness plain iteration converges fast enough
PICARD = 1e-3
# dormant neurons are those whose outputs together are below this share of rtol
DORMANT = 0.01
# a neuron slower than this multiple of the rounding of its pull is at rest
RESTING = 50.0
# ... and a dormant one slower than this multiple of that: others may be at rest only so well
CLEAR = 20.0
# a plateau shorter than this many e-foldings is left to the coupled phase
WORTHWHILE = 3.0
# outputs of riders are this many e-folds below rtol, and may come to be half as many
FAR = 8.0
# ... and so many where they fade: then their weights are nothing, beside any bound on a limit
GONE = 80.0
# ... their balances are this many e-folds below their squares: rounding
EVEN = 40.0
# ... and they turn in a step by this share of what limits it at least: less is no burden
BURDEN = 0.5
# ... and faster than all others by this factor: else those limit it as much
FASTER = 1.2
# ... and they follow their pull with a lag of this times the third root of rtol, at most
LAG = 0.5
# a limit is certified when the path still to go is below this share of rtol
PATH = 1e-3
# outputs are so much larger than labels that they react before weights move, if they round to this
# share of the labels; if to that, the labels are lost
DROWNING = 1e-11
DROWNED = 1e-2
