# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a run says: the table for a terminal and for docs/performance.md, and its caveats."""

import os

HEAD = ("", "measured", "spread", "line", "beside", "ratio", "goal", "met")
LEFT = (0, 4, 6, 7)  # columns of text


def cells(row):
    met = {True: "yes", False: "no", None: ""}[row.met and bool(row.met)
                                                if row.met is not None else None]
    figure = row.figure
    spread = f"±{figure.spread * 100:.0f} %" if figure and figure.n > 1 else ""
    line = f"{figure.line:.0f} ns" if figure and figure.line else ""
    ratio = f"{row.ratio:.2f}" if row.ratio is not None else ""
    return (row.what, row.measured, spread, line, row.reference, ratio, row.goal, met)


def text_table(table, colour):
    """Aligned columns; a heading for each part."""
    bold, green, red, plain = ("\033[1m", "\033[32m", "\033[31m", "\033[0m") if colour \
        else ("",) * 4
    lines = [HEAD] + [cells(row) for _, rows in table for row in rows]
    width = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]

    def aligned(line):
        return "  ".join(c.ljust(w) if i in LEFT else c.rjust(w)
                         for i, (c, w) in enumerate(zip(line, width))).rstrip()

    out = [bold + "  " + aligned(HEAD) + plain]
    for name, rows in table:
        out.append(f"{bold}{name}{plain}")
        for row in rows:
            mark = {"yes": green, "no": red}.get(cells(row)[-1], "")
            out.append("  " + mark + aligned(cells(row)) + (plain if mark else ""))
    return "\n".join(out)


def markdown_table(table):
    lines = ["| | measured | spread | line | beside | ratio | goal | met |",
             "|---|---:|---:|---:|---|---:|---|---|"]
    for name, rows in table:
        lines.append(f"| **{name}** | | | | | | | |")
        lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    return "\n".join(lines)


def floor_text(samples):
    """The floor in words: placements, the raw ring, memcpy."""
    out = []
    if samples.floors:
        seen = ", ".join(f"{line:.0f} ns ({share * 100:.0f} %)"
                         for line, share in samples.placements() if share >= 0.01)
        out.append(f"A cache line crossed in {seen} of the samples; absolute figures are those "
                   f"at {samples.placement:.0f} ns, where there are some.")
    ring = samples.figure("ns", part="latency", measure="latency", link="ring")
    if ring:
        out.append(f"Raw ring, 64 B: {ring.median:.0f} ns one way.")
    fast = samples.figure("ns", part="rate", measure="rate", link="ring", bytes=64)
    wide = samples.figure("ns", part="rate", measure="rate", link="ring", bytes=4096)
    copy = samples.figure("ns", part="rate", measure="memcpy", bytes=4096)
    if fast and wide and copy:
        out.append(f"It carries {1000 / fast.median:.0f} M/s, and {4096 / wide.median:.0f} GB/s "
                   f"at 4 KiB; memcpy alone copies 4 KiB at {4096 / copy.median:.0f} GB/s.")
    return out


def caveats(samples, load, failures):
    """What could not be measured cleanly."""
    out = []
    bracketed = sum("line" in s for s in samples.all)
    if bracketed:
        out.append(f"{samples.thrown} of {bracketed} samples were thrown away: their two floors "
                   "differed by more than 20 %.")
    interrupted = sum(s.get("interrupted", 0) > 20 for s in samples.all
                      if s.get("link") not in ("udp", "eventfd", "umbel-event")
                      and s.get("series") != "busy")
    if interrupted:
        out.append(f"In {interrupted} samples another program took a processor more than 20 "
                   "times.")
    if load["busy"] > 0.05:
        out.append(f"The machine was busy with something else: {load['busy'] * 100:.0f} % of "
                   "its processors while we did nothing. Figures are worse than they are.")
    if load["stolen"] > 0.01:
        out.append(f"The host took {load['stolen'] * 100:.1f} % of the processors' time.")
    out += sorted({s["cannot"] for s in samples.all if "cannot" in s})
    out += [f"{name} failed {len(why)} times, the last time: {why[-1]}"
            for name, why in failures.items() if why]
    return out


def missed(table):
    return sum(row.met is not None and not row.met for _, rows in table for row in rows)


def write_page(template, path, fields):
    """docs/performance.md, from its template: @name@ is replaced."""
    with open(template, encoding="utf-8") as f:
        text = f.read()
    for name, value in fields.items():
        text = text.replace(f"@{name}@", value)
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".new", path)
