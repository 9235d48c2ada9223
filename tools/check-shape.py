#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# No C function has more than 80 lines between its braces, and no C file more than 1,000, but tests, which
# may have 2,000 (CONTRIBUTING.md, "Style"). Prints each that has, as FILE:LINE. Called by tools/check-static.sh.

import pathlib
import sys

FUNCTION = 80
FILE = 1000
TEST = 2000

root = pathlib.Path(__file__).resolve().parent.parent
bad = 0


def complain(path, line, what):
    global bad
    bad = 1
    print('%s:%d: %s' % (path.relative_to(root), line, what))


def check(path):
    lines = path.read_text().splitlines()
    most = TEST if path.name.endswith('_test.c') or 'tests' in path.parts[len(root.parts):] else FILE
    if len(lines) > most:
        complain(path, len(lines), 'a file of more than %d lines' % most)
    begin = 0
    for number, line in enumerate(lines, 1):
        if line == '{':  # clang-format puts those of a function at the beginning of a line
            begin = number
        elif line == '}' and begin:
            if number - begin - 1 > FUNCTION:
                complain(path, begin, 'a function of %d lines' % (number - begin - 1))
            begin = 0


for folder in 'src', 'programs', 'tests', 'bench', 'examples':
    for path in sorted((root / folder).rglob('*.[ch]')):
        check(path)
sys.exit(bad)
