"""From ReLU towards a linear network: one start, trained with five slopes of the activation.

A ReLU neuron that is active on no point is dead; with any slope it goes on learning. These labels
are far from linear, so the steeper the slope, the larger the least network that fits them.
"""

import numpy as np

import reluflow as rf

data = rf.datasets.from_points([-2.0, -1.2, -0.4, 0.5, 1.1, 2.0], [0.5, -0.5, 0.3, -0.4, 0.6, 0.1])
start = rf.networks.balanced(data.d, 12, log_scale=-0.5, seed=2)

for slope in (0.0, 0.01, 0.1, 0.3, 0.9):
    net = start.with_slope(slope)
    run = rf.descend(data, net, lr=0.05, steps=20_000)
    still = int((run.final.W == net.W).all(axis=1).sum())
    least = rf.interpolators.min_norm(data, slope=slope)
    kinks = rf.geometry.kinks(least.network)
    print(
        f"slope {slope:4}: loss {run.loss[-1]:.1e}, {still} neurons never moved, squared norm "
        f"{run.final.squared_norm:.2f}, least that fits {least.value:.2f} "
        f"({len(kinks.positions)} kinks, certified: {least.certified})"
    )

# as the slope tends to 1 only the linear part is left
linear = np.linalg.lstsq(data.X, data.y, rcond=None)[0]
run = rf.descend(data, start.with_slope(0.999), lr=0.05, steps=20_000)
gap = np.abs(run.final.predict(data.X) - data.X @ linear).max()
print(f"nearly linear: differs from the best line by {gap:.2f}")
