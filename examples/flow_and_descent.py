"""Gradient descent beside the flow it approximates: the gap falls in proportion to the step."""

import numpy as np

import reluflow as rf

data = rf.datasets.orthonormal(4, labels=np.array([2.0, 1.0, -1.5, 0.5]), seed=0)
net = rf.networks.balanced(data.d, width=12, log_scale=-4.0, seed=5)
t = 12.0

flow = rf.flow(data, net, t_end=t)
exact = flow.final.predict(data.X)
print("flow:", flow.stats["steps"], "steps,", len(flow.events), "events")
for lr in (0.1, 0.05, 0.025):
    descent = rf.descend(data, net, lr=lr, steps=round(t / lr))
    gap = np.abs(descent.final.predict(data.X) - exact).max()
    print(f"descent with step {lr:<6}: outputs differ by {gap:.2e}, gap / step = {gap / lr:.2e}")

limit = rf.limits.saddle_to_saddle(data, net)
print("groups that jump, in order:", [list(map(int, group)) for group in limit.groups])
