#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The benchmark, `./run bench`: measures in rounds, judges, prints, draws, and writes
docs/performance.md. Only Python's standard library; the programs beside it do the measuring.
"""

import argparse
import json
import math
import os
import platform
import re
import signal
import sys
import time

sys.dont_write_bytecode = True

from driver import goals, plots, report  # noqa: E402
from driver.broadcast import Broadcast  # noqa: E402
from driver.lab import Failed, Lab  # noqa: E402
from driver.parts import PARTS  # noqa: E402
from driver.progress import Progress  # noqa: E402
from driver.stats import Samples  # noqa: E402

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(HERE)
SECONDS = 210  # no round begins that would end later
QUICK = 20
LEAST = 3      # rounds
GIVE_UP = 3    # failures of a part


def processor_times():
    """(busy, idle, stolen), in ticks since the machine started."""
    with open("/proc/stat", encoding="ascii") as f:
        t = [int(x) for x in f.readline().split()[1:9]]
    return sum(t[:3]) + t[5] + t[6], t[3] + t[4], t[7]


class Load:
    """What else the machine does: looked at before we do anything, and when all of ours has ended."""

    def __init__(self):
        self.busy = []
        self.begin = processor_times()

    def look(self):
        before = processor_times()
        time.sleep(1)
        busy, idle, stolen = (b - a for a, b in zip(before, processor_times()))
        self.busy.append(busy / max(1, busy + idle + stolen))

    def json(self):
        spent = [b - a for a, b in zip(self.begin, processor_times())]
        return {"busy": sum(self.busy) / max(1, len(self.busy)),
                "stolen": spent[2] / max(1, sum(spent)), "average": os.getloadavg()}


class Run:
    """Rounds of measurements: all samples, each with its part and round, and what failed."""

    def __init__(self, lab, parts, args):
        self.lab = lab
        self.parts = [part() for part in parts]
        self.args = args
        self.samples = []
        self.failures = {part.name: [] for part in self.parts}
        self.spent = {part.name: 0 for part in self.parts}
        self.rounds = 0
        self.longest = 0
        self.begin = time.time()
        self.progress = Progress()
        self.load = Load()

    def enough(self, part):
        """The rounds that it takes part in."""
        if self.args.quick and getattr(part, "slow", False):
            return 1
        return getattr(part, "enough", math.inf)

    def more(self):
        """Whether there is time for one more round."""
        if self.args.rounds:
            return self.rounds < self.args.rounds
        if all(self.rounds >= self.enough(part) for part in self.parts):
            return False
        took = time.time() - self.begin
        limit = QUICK if self.args.quick else SECONDS
        return self.rounds < LEAST or took + self.longest < limit

    def round(self):
        self.rounds += 1
        round_begin = time.time()
        for part in self.parts:
            failures = self.failures[part.name]
            if len(failures) == GIVE_UP or self.rounds > self.enough(part):
                continue
            self.progress.say(f"{time.time() - self.begin:.0f} s, round {self.rounds}: "
                              f"{part.name}")
            begin = time.time()
            try:
                for sample in part.round(self.lab):
                    self.samples.append({**sample, "part": part.name, "round": self.rounds})
            except Failed as e:
                failures.append(str(e))
            self.spent[part.name] += time.time() - begin
        if self.rounds > 1:  # the first starts the fabrics
            self.longest = max(self.longest, time.time() - round_begin)

    def all(self):
        self.load.look()
        while self.more():
            self.round()
        self.progress.end()

    def given_up(self):
        return [name for name, why in self.failures.items() if len(why) == GIVE_UP]


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        names = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    return (f"{names[0] if names else platform.machine()}, {os.cpu_count()} processors, "
            f"Linux {platform.release().split('-')[0]}")


def size(text):
    """Bytes, K, M or G, in whole words."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not match or int(match.group(1)) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no size")
    return int(match.group(1)) * 1024 ** " KMG".index(match.group(2) or " ") // 8 * 8


def parse():
    parser = argparse.ArgumentParser(
        prog="./run bench", description="Measures Umbel beside a raw ring, UDP sockets and OpenSM. "
        "About a quarter of an hour; pictures and JSON go to build/bench.")
    parser.add_argument("parts", nargs="*", metavar="PART", help="only these (default: all)")
    parser.add_argument("--list", action="store_true", help="what parts there are")
    parser.add_argument("--json", metavar="FILE", help="the samples and the table, there as well")
    parser.add_argument("--quick", action="store_true",
                        help="rough, in half a minute, without the parts that take long unless "
                        "named, and those in one round")
    parser.add_argument("--bytes", type=size, metavar="SIZE", default=Broadcast.bytes,
                        help="that the part broadcast sends, e.g. 1G (default: 64M); each of 64 "
                        "receivers, and the sender, keeps so much memory")
    parser.add_argument("--rounds", type=int, default=0, metavar="N",
                        help="so many, however long that takes")
    parser.add_argument("--umbel", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--output", required=True, help=argparse.SUPPRESS)
    args = parser.parse_args()
    known = {part.name: part for part in PARTS}
    for name in args.parts:
        if name not in known:
            parser.error(f"no part is called '{name}'; there are {', '.join(known)}")
    args.chosen = [p for p in PARTS if p.name in args.parts or
                   not args.parts and not (args.quick and getattr(p, "slow", False))]
    return args


def write_json(path, run, samples, table, load):
    result = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "rounds": run.rounds,
              "seconds": run.spent, "load": load, "placements": samples.placements(), "thrown": samples.thrown,
              "failures": run.failures,
              "table": [{"part": name, "rows": [row.json() for row in rows]}
                        for name, rows in table],
              "samples": samples.all}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(result, f)


def write_docs(output, table, floor, caveats):
    pictures = os.path.join(ROOT, "docs", "performance")
    os.makedirs(pictures, exist_ok=True)
    for name in ("latency", "sizes", "receivers", "flat", "roce", "subnet"):
        with open(os.path.join(output, f"{name}.svg"), encoding="utf-8") as f:
            lines = [line.rstrip() for line in f]
        with open(os.path.join(pictures, f"{name}.svg"), "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
    report.write_page(os.path.join(HERE, "performance.md.in"),
                      os.path.join(ROOT, "docs", "performance.md"),
                      {"table": report.markdown_table(table), "machine": machine(),
                       "floor": "\n".join(floor), "date": time.strftime("%Y-%m-%d"),
                       "caveats": "\n".join(f"- {c}" for c in caveats) or "- none"})


def end(*_):
    """By SIGTERM: once, as what has been started is ended then."""
    signal.signal(signal.SIGTERM, lambda *_: None)
    sys.exit(143)


def main():
    args = parse()
    Broadcast.bytes = args.bytes
    if args.list:
        for part in PARTS:
            print(f"{part.name:10} {part.__doc__}")
        return 0
    signal.signal(signal.SIGTERM, end)
    lab = Lab(args.umbel)
    try:
        run = Run(lab, args.chosen, args)
        run.all()
    finally:
        lab.close()
    run.load.look()
    samples, load = Samples(run.samples), run.load.json()
    done = [p.name for p in args.chosen if p.name not in run.given_up()]
    table = goals.table(samples, done)
    floor = report.floor_text(samples)
    caveats = report.caveats(samples, load, run.failures)
    print(report.text_table(table, sys.stdout.isatty() and not os.environ.get("NO_COLOR")))
    print("\n" + "\n".join(floor + caveats))
    os.makedirs(args.output, exist_ok=True)
    plots.draw_all(samples, done, args.output)
    for path in filter(None, (os.path.join(args.output, "bench.json"), args.json)):
        write_json(path, run, samples, table, load)
    print(f"Pictures and figures are in {os.path.relpath(args.output)}.")
    if len(done) == len(PARTS) and not args.quick and not args.rounds:
        write_docs(args.output, table, floor, caveats)
        print("docs/performance.md is written anew.")
    return 1 if run.given_up() else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
