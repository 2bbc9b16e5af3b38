"""The best network of any width, and how far training ends above it.

Under weight decay the global optimum of loss plus decay has a certificate; so has the largest
margin of a classifier. Gradient descent is compared with both, and with the step it can take.
"""

import numpy as np

import reluflow as rf

rng = np.random.default_rng(0)
X = rng.normal(size=(8, 3))
data = rf.Dataset(X, rng.normal(size=8))

print("weight decay   objective    squared norm   certified")
for decay in (1e-1, 1e-2, 1e-4, 1e-8):
    best = rf.interpolators.min_norm(data, decay=decay)
    print(f"{decay:12.0e}   {best.objective:9.3e}   {best.value:12.6f}   {best.certified}")
least = rf.interpolators.min_norm(data)
print(f"{'exact fit':>12}   {'':9}   {least.value:12.6f}   {least.certified}")

points = rf.Dataset(X, np.where(data.y > 0, 1.0, -1.0))
start = rf.networks.balanced(3, width=60, log_scale=-2.0, seed=1)
run = rf.flow(points, start, loss=rf.losses.Exponential(), stop_log_loss=-1000.0)
best = rf.interpolators.max_margin(points)
margin = rf.geometry.margin(points, run.final)
print(f"normalised margin: training {margin:.6f}, largest possible {best.margin:.6f}")

run = rf.flow(data, rf.networks.balanced(3, width=60, log_scale=-2.0, seed=1))
found = rf.geometry.hessian_spectrum(data, run.final, 2, active=run.active(-1))
print(f"sharpness {found.sharpness:.4f} where the flow ends:", end=" ")
print(f"descent can stay there with steps up to {found.largest_stable_step:.4f}")
print(f"nearest kink: neuron {found.kink[0]} and point {found.kink[1]}, {found.kink_distance:.1e}")
