"""Weight decay: the flow fits first, then drifts to a network of least norm, or to one near it."""

import reluflow as rf

# three points on which one neuron fits, but two of them fit with less norm
data = rf.datasets.cone(3, 3, half_angle=0.7, seed=7)
net = rf.networks.balanced(3, width=20, log_scale=-10.0, seed=1)
least = rf.interpolators.min_norm(data)

plain = rf.flow(data, net)
print(f"no decay: squared norm {plain.final.squared_norm:.4f}, least of a fit {least.value:.4f}")

for decay in (1e-2, 1e-3, 1e-4, 1e-5):
    run = rf.flow(data, net, decay=decay)
    found = rf.interpolators.excess(run)
    best = found.optimum
    print(
        f"decay {decay:g}: ends with loss {run.loss[-1]:.1e}, "
        f"{100 * abs(found.at_most):.2f} % above the optimum, which has width {best.network.width} "
        f"(certified: {best.certified})"
    )
