#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""No circles of calls between the files of a folder: check-calls.py BUILD. Called by check-circles.sh.

The includes do not show these where one header declares what several files define. So this reads the symbols of the objects
in BUILD: a file uses another one of its folder if it needs a symbol that the other one defines. Prints each circle that is
not part of a line of tools/circles, and each line there that has none any more."""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KNOWN = ROOT / 'tools/circles'


def objects(build):
    """The objects of the product's sources that are built: path by source."""
    for entry in json.loads((build / 'compile_commands.json').read_text()):
        source = os.path.relpath(entry['file'], ROOT)
        path = pathlib.Path(entry['directory'], re.search(r' -o (\S+)', entry['command'])[1])
        if source.startswith(('src/', 'programs/')) and not source.endswith('_test.c') and '/tests/' not in source and path.exists():
            yield source, path


def symbols(path):
    """The symbols that an object defines for others, and those that it needs."""
    defined, needed = set(), set()
    text = subprocess.run(['nm', '--extern-only', '--format=posix', path], stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in text.splitlines():
        name, kind = line.split()[:2]
        (needed if kind in 'Uw' else defined).add(name)
    return defined, needed


def is_of_libc(source, name):
    """Functions that stand before the C library's are for programs: who calls free() uses the C library."""
    return os.path.basename(source).startswith('wrap_') and not name.startswith(os.path.basename(os.path.dirname(source)) + '_')


def uses(build):
    """For each file those of its folder that it uses, and by which symbols."""
    defined, needed = collections.defaultdict(set), {}
    for source, path in objects(build):
        names, needed[source] = symbols(path)
        for name in names:
            if not is_of_libc(source, name):
                defined[name].add(source)
    graph = {source: {} for source in needed}
    for source, names in needed.items():
        for name in names:
            for other in defined[name]:
                if other != source and os.path.dirname(other) == os.path.dirname(source):
                    graph[source].setdefault(other, set()).add(name)
    return graph


def circles(graph):
    """Sets of files of which each one uses each other one, by way of others."""
    reach = {}
    for source in graph:
        reach[source], new = set(), [source]
        while new:
            for other in graph[new.pop()]:
                if other not in reach[source]:
                    reach[source].add(other)
                    new.append(other)
    return {frozenset(other for other in reach[source] if source in reach[other]) for source in graph if source in reach[source]}


def known_circles():
    """Those of tools/circles, by line."""
    for line in KNOWN.read_text().splitlines():
        folder, _, names = line.partition(': ')
        if not line.startswith('#'):
            yield line, {f'{folder}/{name}.c' for name in names.split()}


def main():
    graph = uses(pathlib.Path(sys.argv[1]))
    found, known, bad = circles(graph), dict(known_circles()), False
    for circle in found:
        if not any(circle <= files for files in known.values()):
            bad = True
            print(f"{os.path.dirname(min(circle))}: a circle of calls:")
            for source in sorted(circle):
                for other in sorted(circle & graph[source].keys()):
                    print(f"\t{os.path.basename(source)} -> {os.path.basename(other)}: {' '.join(sorted(graph[source][other]))}")
    for line, files in known.items():
        is_known = all(file in graph or not (ROOT / file).exists() for file in files)  # else it is not built
        if is_known and not any(circle <= files for circle in found):
            bad = True
            print(f'tools/circles: no circle any more: {line}')
    sys.exit(bad)

main()
