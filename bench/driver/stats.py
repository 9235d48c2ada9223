# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Samples: which are good, which belong together, what they say.

Good is a sample whose two floors, the time that a cache line takes just before and just after,
agree. The host moves the processors about, so only samples with equal floors are compared, and
an absolute figure is taken from the placement that was seen most, one with near processors if
there was.
"""

from statistics import median

AGREE = 1.2  # floors that differ by more do not agree
NEAR = 75    # ns: the goals are for processors whose lines take no longer
ENOUGH = 0.15  # of the samples, to be taken for that reason
FEW = 3


def agree(*floors):
    return max(floors) <= AGREE * min(floors)


def good(sample):
    return "line" not in sample or agree(*sample["line"])


def floor(sample):
    return sum(sample["line"]) / 2 if "line" in sample else None


class Figure:
    """The median of some values, with the quartiles and the floor at which they were seen."""

    def __init__(self, values, floors=()):
        values = sorted(values)
        self.n = len(values)
        self.median = median(values)
        self.low = values[self.n // 4]
        self.high = values[(3 * self.n) // 4 if self.n > 1 else 0]
        self.line = median(floors) if floors else None

    @property
    def spread(self):
        """Half of the range between the quartiles, as a part of the median."""
        return (self.high - self.low) / 2 / self.median if self.median else 0

    def json(self):
        return {"n": self.n, "median": self.median, "low": self.low, "high": self.high,
                "line": self.line}


class Samples:
    def __init__(self, samples):
        self.all = samples
        for i, sample in enumerate(samples):
            sample["seq"] = i
        self.good = [s for s in samples if good(s)]
        self.floors = sorted(floor(s) for s in self.good if "line" in s)
        self.placement = self.commonest()

    @property
    def thrown(self):
        return len(self.all) - len(self.good)

    def commonest(self):
        """The floor around which most samples lie; near processors are preferred."""
        found = self.placements()
        near = [line for line, share in found if line <= NEAR and share >= ENOUGH]
        return near[0] if near else found[0][0] if found else None

    def placements(self):
        """The floors that were seen, with their share of the samples, commonest first."""
        left, found = list(self.floors), []
        while left:
            at = max(left[::max(1, len(left) // 100)],
                     key=lambda f: sum(agree(f, g) for g in left))
            mine = [g for g in left if agree(at, g)]
            found.append((median(mine), len(mine) / len(self.floors)))
            left = [g for g in left if not agree(at, g)]
        return sorted(found, key=lambda f: -f[1])

    def select(self, **what):
        """Good samples with these fields; None: without that field."""
        return [s for s in self.good if all(s.get(k) == v for k, v in what.items())]

    def usual(self, samples, at=floor):
        """Those of the commonest placement; too few: of the commonest among them."""
        floors = [at(s) for s in samples]
        if None in floors or not floors:
            return samples
        here = [s for s in samples if agree(at(s), self.placement)]
        if len(here) >= FEW:
            return here
        other = max(floors, key=lambda f: sum(agree(f, g) for g in floors))
        return [s for s in samples if agree(at(s), other)]

    def figure(self, field, **what):
        """The figure of a field, or None: no good sample."""
        samples = self.usual([s for s in self.select(**what) if field in s])
        if not samples:
            return None
        return Figure([s[field] for s in samples],
                      [floor(s) for s in samples if "line" in s])

    def pairs(self, one, other):
        """For each of one the nearest of the other, of the same round and with equal floors."""
        found = []
        for a in one:
            near = [b for b in other if b["round"] == a["round"] and
                    agree(*a.get("line", (1,)), *b.get("line", a.get("line", (1,))))]
            if near:
                found.append((a, min(near, key=lambda b: abs(b["seq"] - a["seq"]))))
        return self.usual(found, at=lambda pair: floor(pair[0]))

    def compare(self, one, other, how):
        """The figure of how(a, b) over all pairs, or None."""
        pairs = self.pairs(one, other)
        if not pairs:
            return None
        return Figure([how(a, b) for a, b in pairs],
                      [floor(a) for a, _ in pairs if "line" in a])
