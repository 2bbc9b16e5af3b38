"""Your own points: train, ask theory where it had to end, look at what happened.

Run it from anywhere: ``python examples/own_points.py``. Replace the arrays (or read a table with
``rf.datasets.from_csv("points.csv", label="y")``) and keep the rest.
"""

import numpy as np

import reluflow as rf

rng = np.random.default_rng(3)
X = rng.normal(size=(6, 8)) + 1.5  # six points in eight dimensions, all on one side
y = np.maximum(X @ rng.normal(size=8), 0.1)  # any positive numbers
data = rf.Dataset(X, y, name="my points")

net = rf.networks.balanced(data.d, width=100, log_scale=-20.0, seed=0)
run = rf.flow(data, net)
print(run)
print("status:", run.status, "-", run.status.text)
print("distance to the limit: at most", run.limit_error)

kinds, counts = np.unique(run.events["kind"], return_counts=True)
print("events:", dict(zip(kinds.tolist(), counts.tolist(), strict=True)))

least = rf.interpolators.min_norm(data)
print(f"squared norm: training found {run.final.squared_norm:.6f}, the least is {least.value:.6f}")

prediction = rf.limits.predict(data, net)
print("theory:", prediction.reason)
