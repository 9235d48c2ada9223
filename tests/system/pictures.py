#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
pictures.py FILE.svg: what a picture shows, one a line and sorted: "box LABEL", the lines of a label with " / "
between; "line FROM TO", with "failed", "lit" or "waits" behind those that are. Fails if it is no XML, or if what it shows
lies outside of it.
"""

import sys
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"
COLOURS = {"#c62828": " failed", "#2e7d32": " lit", "#8e24aa": " waits"}


def title(g):
    return g.find(SVG + "title").text


def main():
    root = ElementTree.parse(sys.argv[1]).getroot()
    assert root.tag == SVG + "svg", root.tag
    width, height = (float(v) for v in root.get("viewBox").split()[2:])
    shown = []
    for g in root.iter(SVG + "g"):
        texts = g.findall(".//" + SVG + "text")
        if g.get("class") == "node":
            shown.append("box " + " / ".join(t.text for t in texts))
        elif g.get("class") == "edge":
            path = g.find(".//" + SVG + "path")
            shown.append("line " + title(g).replace("--", " ") + COLOURS.get(path.get("stroke"), ""))
        elif g.get("class") == "graph":
            shown += ["text " + t.text for t in g.findall(SVG + "text") if t.text.strip()]
        for t in texts:
            # y runs from -height to 0
            assert 0 <= float(t.get("x")) <= width and 0 <= -float(t.get("y")) <= height, t.text
    print("\n".join(sorted(shown)))


main()
