#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A picture of a terminal: terminal.py COMMAND < OUTPUT > PICTURE.svg

The picture in README.md is made so, in a fresh checkout: ./run demo | tools/terminal.py ./run demo > docs/pictures/demo.svg"""

import html
import sys

COLUMN, LINE, MARGIN, TOP = 7.8, 18, 16, 34
BACK, FRAME, TEXT, PROMPT, HEAD = '#1e2127', '#2b2f37', '#d7dae0', '#7ec699', '#8fc4ff'


def line_of(number, text, colour, weight='normal'):
    x, y = MARGIN, TOP + MARGIN + number * LINE
    return f'<text x="{x}" y="{y}" fill="{colour}" font-weight="{weight}" xml:space="preserve">{html.escape(text)}</text>'


def main():
    command = ' '.join(sys.argv[1:])
    lines = sys.stdin.read().rstrip('\n').splitlines()
    while lines and not lines[0].strip():
        lines.pop(0)
    width = round(2 * MARGIN + COLUMN * max([len(command) + 2] + [len(line) for line in lines]))
    height = TOP + 2 * MARGIN + LINE * (len(lines) + 1)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
          f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13">')
    print(f'<title>{html.escape(command)}</title>')
    print(f'<rect width="{width}" height="{height}" rx="8" fill="{BACK}"/><path d="M0 8a8 8 0 0 1 8-8h{width - 16}a8 8 0 0 1 8 8v18H0z" fill="{FRAME}"/>')
    for i, colour in enumerate(('#e0656b', '#e2b93d', '#6fbf73')):
        print(f'<circle cx="{16 + 16 * i}" cy="13" r="5" fill="{colour}"/>')
    print(line_of(0, '$ ' + command, PROMPT, 'bold'))
    for number, line in enumerate(lines, 1):
        if line.strip():
            print(line_of(number, line, TEXT if line.startswith(' ') else HEAD, 'normal' if line.startswith(' ') else 'bold'))
    print('</svg>')


main()
