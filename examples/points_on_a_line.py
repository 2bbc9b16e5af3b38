"""Classification of points on a line: follow the loss far below the range of floats.

The exponential loss is followed down to exp(-1000); the normalised network is then nearly a
stationary point of the margin problem, and has few linear pieces however wide it is.
"""

import reluflow as rf

x = [-2.0, -1.1, -0.4, 0.3, 0.9, 2.2]
y = [-1, -1, 1, 1, -1, -1]
data = rf.datasets.from_points(x, y)
net = rf.networks.balanced(data.d, width=60, log_scale=-2.0, seed=1)

run = rf.flow(data, net, loss=rf.losses.Exponential(), stop_log_loss=-1000.0)
print("status:", run.status, " ln t =", round(float(run.log_t[-1]), 3))

for log_loss in (-10.0, -100.0, -1000.0):
    kkt = rf.geometry.kkt(data, run.at(log_loss=log_loss))
    print(f"ln loss {log_loss:7.0f}: stationarity {kkt.epsilon:.1e}, slackness {kkt.delta:.1e}")

regions = rf.geometry.resolved_regions(run)
print("linear pieces:", regions.count, "(resolved)" if regions.resolved else "(not resolved yet)")
best = rf.interpolators.max_margin(data)
margin = rf.geometry.margin(data, run.final)
print(f"normalised margin: training {margin:.5f}, best possible {best.margin:.5f}")
