#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `umbel check` says of OpenSM's routing engines, before and after links have failed by chance,
with members of groups: a line for each fabric and engine, how many verdicts were wrong, and in what.

    opensm_engines.py [--fabrics A,B] [--engines A,B] [--failures N] [--seed N] [--json FILE]

Links fail that are not the last way to somebody, one by one; some come back. A line says which engine
wrote the tables, as OpenSM uses minhop where the engine cannot route. The exit status is 1 if hosts
do not reach each other, packets go round, or a group is reached wrongly, which no engine may do; if
links wait for each other in circles where PROMISES says that they do not; or if none do where they must,
as the judge would be blind then. docs/subnet.md has the outcome of all with 13 failures each.
"""

import argparse
import collections
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../bench"))

from driver import shapes  # noqa: E402

ENGINES = ("minhop", "updn", "dnup", "ftree", "lash", "dor", "torus-2QoS", "nue", "dfsssp", "sssp")
LANES = ("lash", "torus-2QoS", "nue", "dfsssp")  # paths have service levels
# What hosts send to hosts by these never waits in circles if OpenSM says that it has written them. Groups
# have trees of shortest paths, whatever the engine, but for torus-2QoS.
PROMISES = ("updn", "ftree", "lash", "torus-2QoS", "nue", "dfsssp")
NEVER = ("links", "lids", "paths", "loops", "groups")  # may be wrong with no engine
LOSES = ("dnup", "paths")                              # but it is so, after failures
CIRCLES = ("deadlock", "deadlock-groups")
WITH_SWITCHES = "deadlock with what is for switches"   # if there are no circles without that
CIRCLES_FOR_SURE = ("torus of 5 x 5", "minhop")       # shortest paths around a ring of five switches
GROUPS = (("h1", "h4", "h7", "h8"), ("h2", "h3", "h5"))
PATIENCE = 60  # seconds
SWEEPS = 2     # that what may not be has to outlast
QUIET = 0.6    # seconds without a word in the log: all is written


def random_links():
    """A tree of 20 switches, and 12 more links."""
    chance = random.Random(7)
    links = [(i, chance.randrange(i)) for i in range(1, 20)]
    while len(links) < 31:
        a, b = chance.sample(range(20), 2)
        links.append((a, b))
    return shapes.graph(links, 1)


FABRICS = {
    "fat tree of 2 levels": ("--fat-tree", "2", "--radix", "8"),
    "fat tree of 3 levels": ("--fat-tree", "3", "--radix", "4"),
    "torus of 5 x 5": shapes.torus((5, 5), 1),
    "torus of 3 x 3 x 3": shapes.torus((3, 3, 3), 1),
    "hypercube of 16": shapes.hypercube(4, 1),
    "dragonfly of 9 x 4": shapes.dragonfly(4, 2, 1),
    "Slim Fly of 50": shapes.slim_fly(1),
    "random, 20 switches": random_links(),
}


class Failed(Exception):
    """What could not be done."""


def may_be(used, what):
    """Whether the engine that wrote the tables may have this property wrong."""
    if what == "deadlock":
        return used not in PROMISES
    return what not in NEVER or (used, what) == LOSES


def umbel(*arguments, check=True):
    done = subprocess.run([os.environ.get("UMBEL", "umbel"), *arguments], capture_output=True, text=True)
    if check and done.returncode:
        raise Failed(f"umbel {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def wait_until(what, holds):
    """Its result, once it has one."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        result = holds()
        if result:
            return result
        time.sleep(0.05)
    raise Failed(f"in vain: wait until {what}")


class Links:
    """Links between switches by the names of a port; which are up."""

    def __init__(self):
        nodes = json.loads(umbel("show", "topology", "--json"))["nodes"]
        self.at = {n["name"]: n["type"] == "switch" for n in nodes}
        self.links = {}
        for node in nodes:
            for port in node["ports"]:
                if self.at[node["name"]] and self.at.get(port.get("peer")) and node["name"] < port["peer"]:
                    self.links[f"{node['name']}:{port['port']}"] = (node["name"], port["peer"])
        self.down = []

    def connect(self, links):
        """Whether these connect all switches."""
        beside = collections.defaultdict(list)
        for link in links:
            a, b = self.links[link]
            beside[a].append(b)
            beside[b].append(a)
        switches = [name for name, is_switch in self.at.items() if is_switch]
        seen, queue = {switches[0]}, [switches[0]]
        while queue:
            for there in beside[queue.pop()]:
                if there not in seen:
                    seen.add(there)
                    queue.append(there)
        return len(seen) == len(switches)

    def change(self, chance):
        """Something fails, or comes back: "down" or "up", and the link."""
        up = [link for link in self.links if link not in self.down]
        may_fail = [link for link in up if self.connect([other for other in up if other != link])]
        if self.down and (not may_fail or chance.random() < 0.2):
            link = self.down.pop(chance.randrange(len(self.down)))
            return "up", link
        link = chance.choice(may_fail)
        self.down.append(link)
        return "down", link


class Run:
    """OpenSM with an engine on a fabric, which is up in the with statement."""

    def __init__(self, fabric, engine, directory):
        self.fabric, self.engine, self.directory = fabric, engine, directory
        self.log = os.path.join(directory, "log")
        self.programs, self.opensm = [], None

    def __enter__(self):
        options = FABRICS[self.fabric]
        if isinstance(options, str):
            path = os.path.join(self.directory, "topology")
            with open(path, "w", encoding="utf-8") as f:
                f.write(options)
            options = ("--topology", path)
        umbel("up", *options, "--sm", "none")
        try:
            self.start_opensm()
            self.join()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for program in self.programs:
            program.kill()
            program.wait()
        umbel("down", check=False)

    def start(self, host, *command, output=subprocess.DEVNULL):
        program = subprocess.Popen([os.environ.get("UMBEL", "umbel"), "exec", host, "--", *command],
                                   stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                   env=self.environ())
        self.programs.append(program)
        return program

    def environ(self):
        # AddressSanitizer reads a message of OpenSM's again after sendmsg() has sent it
        return {**os.environ, "OSM_CACHE_DIR": self.directory, "OSM_TMP_DIR": self.directory,
                "ASAN_OPTIONS": "detect_leaks=0:intercept_send=0",
                "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}

    def start_opensm(self):
        conf = os.path.join(self.directory, "conf")
        with open(conf, "w", encoding="utf-8") as f:
            f.write("force_log_flush TRUE\nsweep_interval 1\n")
        options = ["-F", conf, "-f", self.log, "-R", self.engine, "-Q"]
        if self.engine == "torus-2QoS":
            options += ["--torus_config", self.torus_config()]
        self.opensm = self.start("h1", "opensm", *options)
        wait_until("OpenSM has swept", self.swept)
        wait_until("all ports are active", lambda: not re.search(
            r'"state": "(init|armed)"', umbel("show", "topology", "--json")))

    def torus_config(self):
        """Where the axes are: the switch at the origin and its neighbours. Other fabrics have none."""
        nodes = json.loads(umbel("show", "topology", "--json"))["nodes"]
        guid = {n["name"]: n["guid"] for n in nodes}
        sizes = [int(n) for n in re.findall(r"\d+", self.fabric)] if "torus" in self.fabric else [2, 2]
        n = len(sizes)
        lines = ["torus " + " ".join(str(k) for k in sizes + [1] * (3 - n))]
        origin = "s" + "_".join("0" * n)
        for axis in range(n if origin in guid else 0):
            for sign, place in (("p", 1), ("m", sizes[axis] - 1)):
                there = "s" + "_".join(str(place if i == axis else 0) for i in range(n))
                lines.append(f"{'xyz'[axis]}{sign}_link {guid[origin]} {guid[there]}")
        path = os.path.join(self.directory, "torus-2QoS.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        return path

    def logged(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def swept(self):
        """How often."""
        return os.path.exists(self.log) and self.logged().count("SUBNET UP")

    def used(self):
        """The engine that has written the tables."""
        found = re.findall(r"osm_ucast_mgr_process: (\S+) tables configured", self.logged())
        return found[-1] if found else "none"

    def join(self):
        """Members of groups. They are stopped once they are, as mckey polls."""
        for number, hosts in enumerate(GROUPS):
            for host in hosts:
                self.join_one(host, f"239.1.1.{number + 1}")

    def join_one(self, host, group):
        path = os.path.join(self.directory, f"mckey-{host}-{group}")

        def once():
            with open(path, "w", encoding="utf-8") as f:
                program = self.start(host, "stdbuf", "-oL", "mckey", "-m", group, "-b",
                                     "10.0.0." + host[1:], output=f)

            def result():
                with open(path, encoding="utf-8") as f:
                    if "mckey: joined dgid" in f.read():
                        return "joined"
                return program.poll() is not None and "ended"
            if wait_until(f"mckey on {host} has joined or ended", result) == "ended":
                return False  # the SA does not respond before its first sweep is done
            program.send_signal(signal.SIGSTOP)
            return True
        wait_until(f"{host} has joined", once)

    def settle(self):
        """Until OpenSM has nothing to say for a while; it may be about to, if the machine is busy."""
        size = -1
        while size != os.path.getsize(self.log):
            size = os.path.getsize(self.log)
            time.sleep(QUIET)

    def verdict(self):
        """What is wrong, by property: the first finding."""
        options = []
        if self.engine in LANES:
            path = os.path.join(self.directory, "paths")

            def query():
                with open(path, "w", encoding="utf-8") as f:
                    return not subprocess.run(
                        [os.environ.get("UMBEL", "umbel"), "exec", "h1", "--", "saquery", "-p"], stdout=f,
                        stderr=subprocess.DEVNULL, env=self.environ(), check=False).returncode
            wait_until("saquery has all paths", query)
            options = ["--paths", path]
        wrong = self.check("--hosts-only", *options)
        if not any(what in wrong for what in CIRCLES):
            wrong.update({WITH_SWITCHES: finding for what, finding in self.check(*options).items()
                          if what in CIRCLES})
        return wrong

    @staticmethod
    def check(*options):
        result = json.loads(umbel("check", "--json", *options, check=False))
        return {what: (p["findings"] or [""])[0] for what, p in result["properties"].items()
                if p["verdict"] == "WRONG"}

    def judged(self):
        """The engine that wrote the tables, and the verdict. What may not be is there to stay: the first sweep
        that ends may have begun before the change, but not the second."""
        wrong = self.verdict()
        if wrong:
            self.settle()
            wrong = self.verdict()
        for _ in range(SWEEPS):
            if all(may_be(self.used(), what) for what in wrong):
                break
            self.sweep()
            wrong = self.verdict()
        return self.used(), wrong

    def sweep(self):
        """Another one, of all."""
        before = self.swept()
        self.opensm.send_signal(signal.SIGHUP)
        wait_until("OpenSM has swept again", lambda: self.swept() > before)

    def change(self, way, link):
        before = self.swept()
        umbel("link", way, link)
        wait_until("OpenSM has swept again", lambda: self.swept() > before)


class Row:
    """What came out for a fabric and an engine."""

    def __init__(self, fabric, engine):
        self.fabric, self.engine = fabric, engine
        self.failures, self.verdicts = 0, 0
        self.used = collections.Counter()
        self.wrong = collections.Counter()   # by the engine that wrote the tables, and the property
        self.first = {}                      # a finding of each

    def note(self, used, verdict, when):
        self.verdicts += 1
        self.used[used] += 1
        for what, finding in verdict.items():
            self.wrong[used, what] += 1
            self.first.setdefault((used, what), f"{when}: {finding}")

    def broken(self):
        """What may not be."""
        found = [f"{self.fabric}, {used} of {self.engine}: {what} {text}"
                 for (used, what), text in self.first.items()
                 if not may_be(used, what)]
        if (self.fabric, self.engine) == CIRCLES_FOR_SURE and not self.wrong["minhop", "deadlock"]:
            found.append(f"{self.fabric}, {self.engine}: no circles")
        return found

    def text(self):
        used = ", ".join(f"{n} by {e}" for e, n in self.used.items())
        wrong = ", ".join(f"{what} {n} ({e})" for (e, what), n in sorted(self.wrong.items()))
        return f"{self.fabric:22} {self.engine:11} {self.failures:4} failures; {used}; {wrong or 'ok'}"

    def json(self):
        return {"fabric": self.fabric, "engine": self.engine, "failures": self.failures,
                "verdicts": self.verdicts, "used": dict(self.used),
                "wrong": [{"used": e, "what": w, "n": n, "first": self.first[e, w]}
                          for (e, w), n in sorted(self.wrong.items())]}


def walk(fabric, engine, failures, chance):
    row = Row(fabric, engine)
    with tempfile.TemporaryDirectory() as directory, Run(fabric, engine, directory) as run:
        links = Links()
        row.note(*run.judged(), "whole")
        while row.failures < failures:
            way, link = links.change(chance)
            run.change(way, link)
            row.failures += way == "down"
            row.note(*run.judged(), f"{link} {way}, {len(links.down)} down")
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--fabrics", default=",".join(FABRICS).replace(", ", " "))
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--failures", type=int, default=13, help="of each engine on each fabric")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="a line for each fabric and engine")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what it has started
    broken, known = [], {name.replace(",", ""): name for name in FABRICS}
    for fabric in options.fabrics.split(","):
        for engine in options.engines.split(","):
            try:
                row = walk(known[fabric], engine, options.failures,
                           random.Random(f"{options.seed} {fabric} {engine}"))
            except Failed as e:
                broken.append(f"{fabric}, {engine}: {e}")
                print(f"{fabric:22} {engine:11} {e}", flush=True)
                continue
            broken += row.broken()
            print(row.text(), flush=True)
            if options.json:
                with open(options.json, "a", encoding="utf-8") as f:
                    f.write(json.dumps(row.json()) + "\n")
    for line in broken:
        print(f"FAIL: {line}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
