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


def graph(links, each):
    """Switches 0, 1, ... with so many hosts each, and these links between them."""
    cables = Cables()
    cables.add_hosts([f"s{i}" for i in range(max(map(max, links)) + 1)], each)
    for a, b in links:
        cables.join(f"s{a}", f"s{b}")
    return cables.text()


def hypercube(dimensions, each):
    """A switch at each corner."""
    return graph([(i, i | 1 << bit) for i in range(1 << dimensions) for bit in range(dimensions)
                  if not i & 1 << bit], each)


def slim_fly(each):
    """Of McKay, Miller and Siran, with q = 5: 50 switches with 7 links each, two links apart at
    most."""
    links = [(half + 5 * x + y, half + 5 * x + z)
             for half, far in ((0, (1, 4)), (25, (2, 3))) for x in range(5)
             for y, z in itertools.combinations(range(5), 2) if z - y in far]
    links += [(5 * x + y, 25 + 5 * m + (y - m * x) % 5)
              for x in range(5) for y in range(5) for m in range(5)]
    return graph(links, each)
