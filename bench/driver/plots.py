# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Pictures of a run, by gnuplot: PNG and SVG of each."""

import math
import os
import subprocess
from statistics import median

from driver.goals import flat_compare
from driver.parts import (CQ_QPS, GROUPS, JOIN_GROUPS, PROCESSES, QPS, RECEIVERS, SIZES,
                          SUBNETS, WIRE_SIZES)
from driver.stats import Samples

NAMES = {"ring": "raw ring", "umbel": "Umbel", "umbel-wr": "Umbel, ibv_wr", "udp": "UDP",
         "memcpy": "memcpy, once"}
COLOUR = {"ring": "#888888", "umbel": "#0060ad", "umbel-wr": "#5bb4e5", "udp": "#c8553d",
          "memcpy": "#c9c9c9", "list": "#0060ad", "single": "#5bb4e5", "third": "#3a8f5c"}

ALIKE = 1.6  # floors that differ by no more go in one picture

STYLE = """
set encoding utf8
set termoption noenhanced
set border 3 lw 1 lc rgb '#444444'
set tics nomirror out scale 0.6
set mxtics 1
set mytics 1
set grid lt 1 lw 0.6 lc rgb '#e4e4e4'
set key top left reverse Left samplen 3 spacing 1.25
set tmargin 3
set rmargin 3
"""

TERMINALS = (("png", "pngcairo size {w},{h} font 'Sans,11' lw 1.6"),
             ("svg", "svg size {w},{h} font 'Sans,13' lw 1.3 dynamic background '#ffffff'"))


class Line:
    """A series to draw: its title, its colour, its points."""

    def __init__(self, title, colour, points, dashed=False):
        self.title = title
        self.points = sorted(points)
        self.style = f"lc rgb '{COLOUR[colour]}' lw 2" + (" dt 2" if dashed else "")


def draw(directory, name, script, width=900, height=500):
    """Runs gnuplot once for each form of picture. False: there is nothing to draw."""
    if "\nplot " not in script:
        return False
    for form, terminal in TERMINALS:
        path = os.path.join(directory, f"{name}.{form}")
        text = (f"set terminal {terminal.format(w=width, h=height)}\n"
                f"set output '{path}'\n{STYLE}\n{script}\nunset output\n")
        subprocess.run(["gnuplot", "-"], input=text, text=True, check=True)
    return True


def plot(lines, with_="linespoints"):
    """The data and the plot command for these lines; nothing if there is nothing."""
    data, parts = [], []
    points = " pt 7 ps 0.55" if with_ == "linespoints" else ""
    for i, line in enumerate(lines):
        if not line.points:
            continue
        rows = "\n".join(f"{x} {y}" for x, y in line.points)
        data.append(f"$d{i} << END\n{rows}\nEND\n")
        parts.append(f"$d{i} with {with_} {line.style}{points} title '{line.title}'")
    return "".join(data) + ("plot " + ", \\\n     ".join(parts) + "\n" if parts else "")


def here(s, field, **what):
    """The median of what was seen in about the placement that the picture is of, or None."""
    figure = s.figure(field, **what)
    if not figure or max(figure.line, s.placement) > ALIKE * min(figure.line, s.placement):
        return None
    return figure.median


def distribution(s, directory):
    """Latency by percentile, the tail drawn out."""
    at = s.select(measure="quantiles")[0]["at"]
    lines = []
    for link in ("udp", "umbel-wr", "umbel", "ring"):
        samples = s.usual(s.select(part="latency", measure="latency", link=link))
        values = [median(q) for q in zip(*(x["quantiles"] for x in samples))]
        lines.append(Line(NAMES[link], link,
                          [(-math.log10(1 - p), v) for p, v in zip(at, values)]))
    return draw(directory, "latency", f"""
set title 'One way, 64 bytes: how many messages take how long (a line takes {s.placement:.0f} ns)'
set xlabel 'messages that take no longer'
set ylabel 'nanoseconds'
set logscale y
set format y '%.0f'
set xrange [0:3.3]
set yrange [10:1000000]
set xtics ('0' 0, '50 %%' 0.30103, '90 %%' 1, '99 %%' 2, '99.9 %%' 3)
""" + plot(lines, "lines"))


def sizes(s, directory):
    """Rate and bandwidth, side by side."""
    series = [("ring", "raw ring", dict(link="ring"), "ring"),
              ("list", "Umbel, lists of 32", dict(link="umbel", list=32), "list"),
              ("single", "Umbel, one by one", dict(link="umbel", list=1), "single"),
              ("udp", "UDP, lists of 32", dict(link="udp"), "udp")]
    found = {key: [(size, here(s, "ns", part="rate", measure="rate", bytes=size, **what))
                   for size in SIZES] for key, _, what, _ in series}
    rates = [Line(title, colour, [(x, 1000 / t) for x, t in found[key] if t])
             for key, title, _, colour in series]
    widths = [Line(title, colour, [(x, x / t) for x, t in found[key] if t])
              for key, title, _, colour in series]
    return draw(directory, "sizes", f"""
set multiplot layout 1,2
set logscale x 2
set logscale y
set xrange [48:5400]
set xtics (64, 256, '1 KiB' 1024, '4 KiB' 4096)
set xlabel 'bytes of a message'
set format y '%g'
set title 'Million messages a second (a line takes {s.placement:.0f} ns)'
set yrange [0.1:200]
unset key
{plot(rates)}
set title 'Gigabytes a second'
set yrange [0.01:100]
set key bottom right
{plot(widths)}
unset multiplot
""", width=1100)


def receivers(s, directory):
    """What a message costs its sender."""
    lines = []
    for size, colour in ((64, "list"), (4096, "third")):
        for processes, counts in RECEIVERS.items():
            costs = [(n, here(s, "ns", measure="fanout", bytes=size, qps=n,
                              processes=processes)) for n in counts]
            name = "64 B" if size == 64 else "4 KiB"
            where = "one process" if processes == 1 else "two processes"
            lines.append(Line(f"{name}, {where}", colour,
                              [(n, t) for n, t in costs if t], processes == 2))
    return draw(directory, "receivers", f"""
set title 'What a message costs its sender (a line takes {s.placement:.0f} ns)'
set xlabel 'queue pairs that receive it'
set ylabel 'nanoseconds a message'
set logscale x 2
set logscale y
set format y '%.0f'
set xrange [0.9:72]
set xtics (1, 2, 4, 8, 16, 32, 64)
""" + plot(lines))


def flatness(s, directory):
    """Latency and rate beside those of a plain fabric, by groups and queue pairs."""
    kinds = (("groups", GROUPS, "groups on the fabric", "list"),
             ("qps", QPS, "queue pairs on the fabric", "third"),
             ("cq", CQ_QPS, "queue pairs on the CQ", "udp"))
    panels = []
    for measure in ("latency", "rate"):
        lines = []
        for kind, numbers, title, colour in kinds:
            ratios = [(n, flat_compare(s, f"{kind}-{n}", measure)) for n in numbers]
            lines.append(Line(title, colour,
                              [(1, 1)] + [(n, r.median) for n, r in ratios if r]))
        points = [y for line in lines for _, y in line.points]
        panels.append(f"set yrange [{min([0.8] + points) - 0.1}:{max([1.2] + points) + 0.35}]\n"
                      f"set title '{measure}, beside that of a fabric with one'\n"
                      + plot(lines))
    return draw(directory, "flat", """
set multiplot layout 1,2
set logscale x
set xrange [0.8:14000]
set xtics ('1' 1, '10' 10, '100' 100, '1,000' 1000, '10,000' 10000)
set xlabel 'how many'
set format y '%.1f'
set object 1 rectangle from graph 0, first 0.9 to graph 1, first 1.1 behind \\
    fc rgb '#e8f2ea' fs solid noborder
""" + "\n".join(panels) + "unset multiplot\n", width=1100)


def subnet(s, directory):
    """Bringing a fabric up and joins, beside OpenSM."""
    def lines(measure, by, numbers):
        out = []
        for sm, title, colour in (("opensm", "OpenSM", "udp"), ("embedded", "Umbel", "umbel")):
            figures = [(n, s.figure("ms", measure=measure, sm=sm, **{by: n})) for n in numbers]
            out.append(Line(title, colour, [(n, f.median) for n, f in figures if f]))
        return out

    draw(directory, "subnet", f"""
set multiplot layout 1,2
set logscale x
set logscale y
set format y '%g'
set ylabel 'milliseconds'
set title 'From the start until all ports are active'
set xlabel 'hosts'
set xrange [25:5000]
set xtics (36, 648, '3,456' 3456)
set yrange [1:100000]
{plot(lines("start", "hosts", SUBNETS))}
set title 'A join, until the switch forwards'
set xlabel 'groups'
set xrange [0.7:14000]
set xtics (1, 100, '10,000' 10000)
set yrange [0.01:1000]
{plot(lines("joins", "groups", JOIN_GROUPS))}
unset multiplot
""", width=1100)


def wire(s, directory):
    """RoCEv2 beside UDP sockets: rate by size, and by the processes that receive."""
    series = (("UDP sockets", "udp", dict(link="udp", cut=False)),
              ("Umbel, joined", "umbel", dict(link="roce", cut=False)),
              ("Umbel, cut", "umbel-wr", dict(link="roce", cut=True)))
    everybody = (("UDP sockets", "udp", dict(link="udp")), ("Umbel", "umbel", dict(link="roce")))

    def lines(measure, by, numbers, series):
        out = []
        for title, colour, what in series:
            figures = [(n, s.figure("ns", part="roce", measure=measure, **what, **{by: n}))
                       for n in numbers]
            out.append(Line(title, colour, [(n, 1000 / f.median) for n, f in figures if f]))
        return out

    draw(directory, "roce", f"""
set multiplot layout 1,2
set logscale x 2
set logscale y
set format y '%g'
set title 'Million messages a second'
set xlabel 'bytes of a message'
set xrange [48:5400]
set xtics (64, '1 KiB' 1024, '4 KiB' 4096)
set yrange [0.02:10]
set key bottom left
{plot(lines("rate", "bytes", WIRE_SIZES, series))}
set title 'Million messages a second that all have, 64 bytes'
set xlabel 'processes on one processor that receive'
set xrange [0.8:10]
set xtics (1, 2, 4, 8)
set key top right
{plot(lines("receivers", "processes", PROCESSES, everybody))}
unset multiplot
""", width=1100)


PLOTS = (("latency", distribution), ("rate", sizes), ("fanout", receivers), ("flat", flatness))


def draw_all(samples, parts, directory):
    """Draws what the parts that were measured allow, each in its own commonest placement; near
    processors are preferred, if there are enough samples of the same thing to draw any."""
    for part, function in PLOTS:
        mine = Samples([s for s in samples.all if s["part"] == part])
        if part in parts and mine.placement and not function(mine, directory):
            mine.placement = mine.placements()[0][0]
            function(mine, directory)
    for part, function in (("roce", wire), ("subnet", subnet)):  # no placement matters
        mine = Samples([s for s in samples.all if s["part"] == part])
        if mine.all and part in parts:
            function(mine, directory)
