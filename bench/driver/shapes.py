# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fabrics that are no fat trees, as text for `umbel up --topology`."""

import itertools


class Cables:
    """Nodes and the cables between them; ports are taken in order."""

    def __init__(self):
        self.ports = {}  # by node: the lines of its ports

    def join(self, a, b):
        for node in (a, b):
            self.ports.setdefault(node, [])
        at, there = len(self.ports[a]) + 1, len(self.ports[b]) + 1
        self.ports[a].append(f'[{at}] "{b}"[{there}]')
        self.ports[b].append(f'[{there}] "{a}"[{at}]')

    def add_hosts(self, switches, each):
        for i, switch in enumerate(s for s in switches for _ in range(each)):
            self.join(switch, f"h{i + 1}")

    def text(self):
        """Hosts are the nodes whose name begins with h."""
        return "\n".join(
            "\n".join((f'{"Hca" if node.startswith("h") else "Switch"} {len(lines)} "{node}"',
                       *lines, "")) for node, lines in self.ports.items())


def torus(sizes, each):
    """A switch at each place of a torus, with so many hosts each."""
    cables = Cables()
    places = list(itertools.product(*map(range, sizes)))

    def name(place):
        return "s" + "_".join(map(str, place))

    cables.add_hosts(map(name, places), each)
    for place in places:
        for i, size in enumerate(sizes):
            beside = (*place[:i], (place[i] + 1) % size, *place[i + 1:])
            cables.join(name(place), name(beside))
    return cables.text()


def dragonfly(switches, up, each):
    """Groups of switches that are all joined, each switch with so many cables to other groups;
    one cable between any two groups, of which there are as many as that allows."""
    cables = Cables()
    groups = switches * up + 1

    def name(group, switch):
        return f"s{group}_{switch}"

    cables.add_hosts((name(g, s) for g in range(groups) for s in range(switches)), each)
    for g in range(groups):
        for a, b in itertools.combinations(range(switches), 2):
            cables.join(name(g, a), name(g, b))
        for k in range(switches * up):  # cable k of group g leads k + 1 groups on
            there = (g + k + 1) % groups
            if g < there:
                cables.join(name(g, k // up), name(there, (groups - 2 - k) // up))
    return cables.text()
