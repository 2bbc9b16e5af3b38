"""Lazy against rich: the same start at growing sizes, trained as a network and linearised.

Each network is doubled with opposite outputs, so that it starts at zero whatever its size. Large
ones hardly move: what they learn between the points is what their tangent learns, whose limit
`rf.limits.kernel` knows without training. (The tangent jumps where a neuron switches, so the two
are compared in the mean.)
"""

import numpy as np

import reluflow as rf

data = rf.datasets.from_points([-2.0, -1.2, -0.4, 0.5, 1.1, 2.0], [0.5, -0.5, 0.3, -0.4, 0.6, 0.1])
half = rf.networks.gaussian(data.d, 40, sigma_hidden=0.4, sigma_output=0.4, seed=0)
a, W = np.append(half.a, -half.a), np.vstack([half.W, half.W])
between = np.column_stack([np.linspace(-2.0, 2.0, 401), np.ones(401)])

for size in (0.5, 2.0, 8.0):
    net = rf.Network(size * a, size * W)
    rich = rf.flow(data, net, stop_loss=1e-16)
    lazy = rf.limits.kernel(data, net)
    gap = np.sqrt(np.mean((rich.final.predict(between) - lazy.predict(between)) ** 2))
    moved = np.linalg.norm(rich.final.W - net.W) / np.linalg.norm(net.W)
    print(f"size {size:<4}: weights moved by {moved:.1%}, functions differ by {gap:.3f}")

run = rf.flow(data, net, train="linearised")
print("linearised flow:", run.status, "with loss", f"{run.loss[0]:.3f} -> {run.loss[-1]:.1e}")
