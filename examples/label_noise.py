"""Noise on the labels prefers small weights: descent with and without, from the same start.

Both runs fit six points on a line. Plain descent stays where it arrived; with fresh noise on the
labels of every step the weights go on moving along the fits, towards smaller ones.
"""

import numpy as np

import reluflow as rf

data = rf.datasets.from_points([-2.0, -1.2, -0.4, 0.5, 1.1, 2.0], [0.5, -0.5, 0.3, -0.4, 0.6, 0.1])
net = rf.networks.gaussian(data.d, 30, sigma_hidden=1.0, sigma_output=1.0, seed=3)

plain = rf.descend(data, net, lr=0.01, steps=30_000)
noisy = rf.descend(data, net, lr=0.01, steps=30_000, label_noise=0.5, seed=0)
for name, run in (("without noise", plain), ("with noise", noisy)):
    print(f"{name}: loss {run.loss[-1]:.1e}, squared norm {run.final.squared_norm:.3f}")

# a step in the middle is what a loop of one's own would make of the same labels
step = 12_345
before, after = noisy.at(step), noisy.at(step + 1)
H = np.maximum(data.X @ before.W.T, 0.0)
force = (rf.batch_of(noisy, step).labels - H @ before.a) / data.n
gap = np.abs(before.a + 0.01 * (H.T @ force) - after.a).max()
print(f"step {step} by hand: output weights differ by {gap:.0e}")
