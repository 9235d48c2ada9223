#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`./run bench-routes`: how evenly routing engines load links, the embedded subnet manager's and
OpenSM's on the same fabrics, and what they cost. Prints, draws, and writes the table and the
picture of docs/subnet.md.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys

sys.dont_write_bytecode = True

from driver import plots, shapes  # noqa: E402
from driver.lab import Failed, Lab  # noqa: E402
from driver.progress import Progress  # noqa: E402

HERE = os.path.dirname(os.path.realpath(__file__))
PAGE = os.path.join(os.path.dirname(HERE), "docs", "subnet.md")
PICTURE = os.path.join(os.path.dirname(HERE), "docs", "subnet", "routes.svg")
BEGIN, END = "<!-- ./run bench-routes writes this table -->\n", "<!-- its end -->\n"
ENGINES = ("minhop", "updn", "ftree", "dfsssp")
MANAGERS = {"umbel": "Umbel", "opensm": "OpenSM"}
LARGE = 10000     # hosts: OpenSM is not asked
PATIENCE = 300    # seconds for OpenSM
COLOURS = {"umbel": ("#9ecae9", "#5bb4e5", "#3a86c8", "#0b4a8a"),
           "opensm": ("#f2c6b4", "#e39a80", "#c8553d", "#7d2b1a")}


class Shape:
    """A fabric: what the picture calls it, how many hosts, options of `umbel up` or its file."""

    def __init__(self, title, hosts, options=(), text=None, unit="hosts"):
        self.title, self.hosts, self.options, self.text = title, hosts, options, text
        self.unit = unit

    @property
    def label(self):
        return f"{self.title}, {self.hosts:,} {self.unit}"


def of_file(path):
    """That of a topology file, such as ibnetdiscover writes of a real cluster."""
    with open(path, encoding="utf-8", errors="replace") as f:
        n = len(re.findall(r"^(?:Ca|Hca)\s", f.read(), re.MULTILINE))
    return Shape(os.path.basename(path), n, ("--topology", path), unit="HCAs")


def all_shapes():
    def tree(hosts, levels, radix):
        return Shape(f"fat tree of {levels} levels", hosts,
                     ("--fat-tree", str(levels), "--radix", str(radix)))

    def torus(*sizes, each):
        hosts = each
        for size in sizes:
            hosts *= size
        return Shape("torus of " + " x ".join(map(str, sizes)), hosts,
                     text=shapes.torus(sizes, each))

    def dragonfly(switches, up, each):
        groups = switches * up + 1
        return Shape(f"dragonfly of {groups} x {switches} switches", groups * switches * each,
                     text=shapes.dragonfly(switches, up, each))

    return (tree(648, 2, 36), tree(3456, 3, 24), tree(27648, 3, 48), torus(5, 5, each=2),
            torus(8, 8, each=2), torus(4, 4, 4, each=2), torus(6, 6, 6, each=2),
            dragonfly(4, 2, 2), dragonfly(8, 2, 4), dragonfly(8, 4, 4))


class Fabric:
    """One that is up, without a subnet manager until run() has been called."""

    def __init__(self, lab, shape, options):
        self.lab = lab
        if shape.text:
            path = os.path.join(lab.directory, "shape")
            with open(path, "w", encoding="ascii") as f:
                f.write(shape.text)
            options = ("--topology", path, *options)
        lab.call("up", "--sm", "none", *shape.options, *options)
        self.status = lab.umbel_json("status")[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lab.call("down")

    def log(self):
        with open(os.path.join(self.lab.env["UMBEL_RUNTIME_DIR"], "default", "log"),
                  encoding="utf-8") as f:
            return f.read()

    def load(self):
        """The largest load of a link by the mean, of all kinds of links that have any; how many
        links have none."""
        kinds = {}
        for link in self.lab.umbel_json("show", "routes", "--load")["links"]:
            kind = tuple(re.match("[a-z]*", link[end]).group() for end in ("switch", "peer"))
            kinds.setdefault(kind, []).append(link["paths"])
        return (max((max(paths) * len(paths) / sum(paths) for paths in kinds.values() if sum(paths)),
                    default=1.0),
                sum(paths.count(0) for paths in kinds.values()))


def processor_seconds(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) / 1e9


def by_umbel(lab, shape, engine):
    """(seconds of the daemon's processor time, whether the engine could route it, load)"""
    with Fabric(lab, shape, ("--set", f"routing={engine}")) as fabric:
        pid = fabric.status["pid"]
        before = processor_seconds(pid)
        lab.call("sm", "start")
        spent = processor_seconds(pid) - before
        return spent, "is routed" not in fabric.log(), fabric.load()


def by_opensm(lab, shape, engine):
    """The same by Debian's OpenSM, which ends after its first sweep: its own processor time."""
    with Fabric(lab, shape, ()) as fabric:
        log = os.path.join(lab.directory, f"opensm-{engine}.log")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        first = lab.umbel_json("show", "hosts")[0]["name"]
        options = ("-Q",) if engine == "dfsssp" else ()  # it uses lanes only with QoS
        try:
            subprocess.run([lab.umbel, "exec", first, "--", "opensm", "-o", "-R", engine, "-f", log,
                            *options], env={**lab.env, "OSM_CACHE_DIR": lab.directory,
                                            "OSM_TMP_DIR": lab.directory},
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            raise Failed(f"OpenSM, {engine}: no routes after {PATIENCE} s") from None
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(log, encoding="utf-8", errors="replace") as f:
            used = re.findall(r"osm_ucast_mgr_process: (\S+) tables configured", f.read())
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return spent, used[-1:] == [engine], fabric.load()


def measure(lab, chosen, progress):
    """A result for each fabric, subnet manager and engine."""
    for shape in chosen:
        for manager, how in (("umbel", by_umbel), ("opensm", by_opensm)):
            for engine in ENGINES:
                result = {"fabric": shape.label, "manager": manager, "engine": engine}
                if manager == "opensm" and shape.hosts >= LARGE:
                    continue
                progress.say(f"{shape.label}: {MANAGERS[manager]}, {engine}")
                try:
                    seconds, able, (most, unused) = how(lab, shape, engine)
                    result.update(seconds=seconds, able=able, most=most, unused=unused)
                except Failed as e:
                    result.update(failed=str(e))
                yield result


def seconds(x):
    return f"{x * 1000:.2g} ms" if x < 0.0995 else f"{x:.2g} s" if x < 9.95 else f"{x:.0f} s"


def cell(result):
    if not result:
        return ""
    if "failed" in result:
        return "fails"
    if not result["able"]:
        return "-"
    unused = f"; {result['unused']:,} unused" if result["unused"] else ""
    return f"{result['most']:.2f}{unused}, {seconds(result['seconds'])}"


def rows(results):
    """By fabric: its label and the cells of both subnet managers' engines."""
    found = {(r["fabric"], r["manager"], r["engine"]): r for r in results}
    for label in dict.fromkeys(r["fabric"] for r in results):
        yield [label] + [cell(found.get((label, manager, engine)))
                         for manager in MANAGERS for engine in ENGINES]


HEAD = ["fabric"] + [f"{name} `{engine}`" for name in MANAGERS.values() for engine in ENGINES]


def markdown(results):
    lines = ["| " + " | ".join(line) + " |" for line in (HEAD, *rows(results))]
    lines.insert(1, "|" + "---|" * len(HEAD))
    return "\n".join(lines) + "\n"


def text(results):
    lines = [[name.replace("`", "") for name in HEAD], *rows(results)]
    width = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, width)).rstrip()
                     for line in lines)


def draw(results, directory):
    """Bars: a group for each fabric, one bar an engine; none where it could not route."""
    found = {(r["fabric"], r["manager"], r["engine"]): r["most"] for r in results if r.get("able")}
    table, bars = [], []
    for label in dict.fromkeys(r["fabric"] for r in results):
        most = (found.get((label, manager, engine), "-")
                for manager in MANAGERS for engine in ENGINES)
        table.append(" ".join(map(str, ('"' + label.replace(", ", "\\n") + '"', *most))))
    for i, (manager, name) in enumerate(MANAGERS.items()):
        for k, (engine, colour) in enumerate(zip(ENGINES, COLOURS[manager])):
            if any(key[1:] == (manager, engine) for key in found):
                bars.append(f"$loads using {2 + len(ENGINES) * i + k}:xtic(1) "
                            f"lc rgb '{colour}' title '{name}, {engine}'")
    plots.draw(directory, "routes", f"""
$loads << END
{chr(10).join(table)}
END
set title 'The most loaded link between switches, by the mean of its kind; 1 is perfect'
set style data histograms
set style histogram clustered gap 2
set style fill solid noborder
set datafile missing '-'
unset mxtics
set xtics scale 0 rotate by 30 right font ',9'
set logscale y
set ytics (1, 1.5, 2, 3, 4, 6, 8, 12, 16)
set yrange [0.95:18]
set rmargin 22
set key outside right center
set bmargin 7
plot {", ".join(bars)}
""", width=1200, height=560)


def write_page(results, directory):
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(page[:begin] + markdown(results) + page[end:])
    os.makedirs(os.path.dirname(PICTURE), exist_ok=True)
    with open(os.path.join(directory, "routes.svg"), encoding="utf-8") as f, \
         open(PICTURE, "w", encoding="utf-8") as to:
        to.write("".join(line.rstrip() + "\n" for line in f))


def parse():
    parser = argparse.ArgumentParser(
        prog="./run bench-routes", description="How evenly routing engines load links: the "
        "embedded subnet manager's and OpenSM's on the same fabrics. Some minutes; the picture "
        "and figures go to build/bench, and into docs/subnet.md unless fabrics are named.")
    parser.add_argument("--topology", metavar="FILE", action="append", default=[],
                        help="only this fabric, of a topology file; may be repeated")
    parser.add_argument("fabrics", nargs="*", metavar="FABRIC",
                        help="only those whose description contains this (default: all)")
    parser.add_argument("--list", action="store_true", help="what fabrics there are")
    parser.add_argument("--json", metavar="FILE", help="the figures, there as well")
    parser.add_argument("--cwd", default=".", help=argparse.SUPPRESS)
    parser.add_argument("--umbel", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--output", required=True, help=argparse.SUPPRESS)
    args = parser.parse_args()
    try:
        args.chosen = [of_file(os.path.join(args.cwd, path)) for path in args.topology]
    except OSError as e:
        parser.error(f"cannot read '{e.filename}': {e.strerror}")
    if args.fabrics or not args.topology:
        args.chosen += [s for s in all_shapes()
                        if not args.fabrics or any(name in s.label for name in args.fabrics)]
    if not args.chosen:
        parser.error(f"no fabric is like '{args.fabrics[0]}'; --list shows them")
    return args


def main():
    args = parse()
    if args.list:
        print("\n".join(shape.label for shape in args.chosen))
        return 0
    progress = Progress()
    lab = Lab(args.umbel)
    try:
        results = list(measure(lab, args.chosen, progress))
    finally:
        progress.end()
        lab.close()
    print(text(results))
    os.makedirs(args.output, exist_ok=True)
    draw(results, args.output)
    for path in filter(None, (os.path.join(args.output, "routes.json"),
                              args.json and os.path.join(args.cwd, args.json))):
        with open(path, "w", encoding="utf-8") as f:
            json.dump(results, f)
    if not args.fabrics and not args.topology:
        write_page(results, args.output)
        print("docs/subnet.md is written anew.")
    failed = [f"{r['fabric']}: {r['failed']}" for r in results if "failed" in r]
    print("\n".join(failed), end="\n" if failed else "", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
