#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`./run bench-engines`: which routing engine to take. The embedded subnet manager's engines and OpenSM's on the
same fabrics: how evenly they load links, how many lanes they need, what they cost, and how many failures of
links they stand before hosts do not reach each other, links wait for each other in circles, or another engine has
taken over. Prints, and writes the table of docs/engines.md.

Links fail one by one, the same ones for each engine; none is the last way to somebody.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/property"))

import opensm_engines as theirs  # noqa: E402
import routes  # noqa: E402

PAGE = os.path.join(HERE, "..", "docs", "engines.md")
BEGIN, END = "<!-- ./run bench-engines writes this table -->\n", "<!-- its end -->\n"
OURS = routes.ENGINES
FAILURES = 10
TRIES = 3  # of a verdict that is wrong: OpenSM may be about to write more


class Umbel:
    """The embedded subnet manager with an engine, as theirs.Run is OpenSM."""

    def __init__(self, fabric, engine, directory):
        self.fabric, self.engine, self.directory = fabric, engine, directory

    def __enter__(self):
        options = theirs.FABRICS[self.fabric]
        if isinstance(options, str):
            path = os.path.join(self.directory, "topology")
            with open(path, "w", encoding="utf-8") as f:
                f.write(options)
            options = ("--topology", path)
        theirs.umbel("up", *options, "--sm", "none", "--set", f"routing={self.engine}")
        self.pid = json.loads(theirs.umbel("status", "--json"))[0]["pid"]
        before = routes.processor_seconds(self.pid)
        theirs.umbel("sm", "start")
        self.seconds = routes.processor_seconds(self.pid) - before
        return self

    def __exit__(self, *_):
        theirs.umbel("down", check=False)

    def used(self):
        """The engine that has written the tables: the log says where another one did."""
        path = os.path.join(os.environ["UMBEL_RUNTIME_DIR"], "default", "log")
        with open(path, encoding="utf-8") as f:
            return "updn" if "is routed" in f.read() and self.engine != "updn" else self.engine

    @staticmethod
    def change(way, link):
        theirs.umbel("link", way, link)


class OpenSM(theirs.Run):
    """Without members of groups: their trees are in no engine's promise."""

    def join(self):
        with open(f"/proc/{self.opensm.pid}/stat", encoding="ascii") as f:
            ticks = f.read().rsplit(")", 1)[1].split()[11:13]
        self.seconds = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def load():
    """The most loaded link by the mean, of all kinds of links."""
    kinds = {}
    for link in json.loads(theirs.umbel("show", "routes", "--load", "--json"))["links"]:
        kind = tuple(link[end].rstrip("0123456789_") for end in ("switch", "peer"))
        kinds.setdefault(kind, []).append(link["paths"])
    return max((max(p) * len(p) / sum(p) for p in kinds.values() if sum(p)), default=1.0)


def judge():
    """What is wrong between hosts, and on how many lanes links wait."""
    verdict = json.loads(theirs.umbel("check", "--json", "--hosts-only", check=False))
    wrong = [what for what in ("links", "lids", "paths", "loops", "deadlock")
             if verdict["properties"][what]["verdict"] == "WRONG"]
    return wrong, verdict["lanes"]


def stands(run):
    """Whether all is well, with the tables of this engine."""
    for _ in range(TRIES):
        wrong, _ = judge()
        if not wrong:
            return run.used() == run.engine
        if isinstance(run, Umbel):
            return False
        time.sleep(0.5)
    return False


def measure(fabric, manager, engine):
    result = {"fabric": fabric, "manager": manager, "engine": engine, "stood": 0}
    chance = random.Random(fabric)
    with tempfile.TemporaryDirectory() as directory, \
         (Umbel if manager == "umbel" else OpenSM)(fabric, engine, directory) as run:
        links = theirs.Links()
        wrong, lanes = judge()
        if wrong and manager == "opensm":
            run.settle()
            wrong, lanes = judge()
        result.update(used=run.used(), wrong=wrong, lanes=lanes, most=load(), seconds=run.seconds)
        if run.used() != engine or wrong:
            return result
        while result["stood"] < FAILURES:
            up = [link for link in links.links if link not in links.down]
            may = [link for link in up if links.connect([other for other in up if other != link])]
            if not may:
                break
            link = chance.choice(may)
            links.down.append(link)
            run.change("down", link)
            if not stands(run):
                break
            result["stood"] += 1
    return result


def cell(r):
    if not r:
        return ""
    if "failed" in r:
        return "fails"
    if r["used"] != r["engine"]:
        return "-"
    what = f"{r['most']:.2f}, {routes.seconds(r['seconds'])}"
    if "deadlock" in r["wrong"]:
        return what + ", circles"
    if r["wrong"]:
        return what + ", " + " ".join(r["wrong"]) + " wrong"
    return f"{what}, {r['lanes']} lane{'' if r['lanes'] == 1 else 's'}, {r['stood']}"


def engines():
    return [("umbel", e) for e in OURS] + [("opensm", e) for e in theirs.ENGINES]


def markdown(results):
    found = {(r["fabric"], r["manager"], r["engine"]): r for r in results}
    fabrics = list(dict.fromkeys(r["fabric"] for r in results))
    lines = [["engine", *fabrics]]
    lines += [[f"{routes.MANAGERS[m]} `{e}`"] + [cell(found.get((f, m, e))) for f in fabrics]
              for m, e in engines()]
    text = ["| " + " | ".join(line) + " |" for line in lines]
    text.insert(1, "|" + "---|" * len(lines[0]))
    return "\n".join(text) + "\n"


def write_page(results):
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(page[:begin] + markdown(results) + page[end:])


def parse():
    parser = argparse.ArgumentParser(
        prog="./run bench-engines", description="The embedded subnet manager's routing engines and OpenSM's on the "
        "same fabrics: load, lanes, processor time, failures. Half an hour; the figures go to build/bench, and "
        "into docs/engines.md unless fabrics are named.")
    parser.add_argument("fabrics", nargs="*", metavar="FABRIC",
                        help="only those whose description contains this (default: all)")
    parser.add_argument("--list", action="store_true", help="what fabrics there are")
    parser.add_argument("--cwd", default=".", help=argparse.SUPPRESS)
    parser.add_argument("--umbel", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--output", required=True, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.chosen = [f for f in theirs.FABRICS if not args.fabrics or any(name in f for name in args.fabrics)]
    if not args.chosen:
        parser.error(f"no fabric is like '{args.fabrics[0]}'; --list shows them")
    return args


def all_results(args):
    for fabric in args.chosen:
        for manager, engine in engines():
            try:
                result = measure(fabric, manager, engine)
            except theirs.Failed as e:
                result = {"fabric": fabric, "manager": manager, "engine": engine, "failed": str(e)}
            print(f"{fabric:22} {routes.MANAGERS[manager]:6} {engine:11} {cell(result)}", flush=True)
            yield result


def main():
    args = parse()
    if args.list:
        print("\n".join(args.chosen))
        return 0
    os.environ["UMBEL"] = args.umbel
    with tempfile.TemporaryDirectory() as directory:
        os.environ["UMBEL_RUNTIME_DIR"] = directory
        results = list(all_results(args))
    os.makedirs(args.output, exist_ok=True)
    with open(os.path.join(args.output, "engines.json"), "w", encoding="utf-8") as f:
        json.dump(results, f)
    if not args.fabrics:
        write_page(results)
        print("docs/engines.md is written anew.")
    return 1 if any("failed" in r for r in results) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
