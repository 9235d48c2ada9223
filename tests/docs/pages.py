#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
pages.py SOURCE EXCEPTIONS PAGE: the commands of a page, as a script for bash that calls the functions of pages.bash. In
a page of Markdown they are the blocks that are marked "sh" or are indented by four columns, in a manual page the
literal text below EXAMPLES. A block that is no commands, a picture, and what else needs more than to be run, is in
EXCEPTIONS, whose first lines describe it. An exception that fits nothing in the page is an error.
"""

import os
import re
import shlex
import subprocess
import sys

KINDS = ("text", "shows", "picture", "read", "start", "again", "as", "before", "status")


class Problem(Exception):
    pass


def markdown_blocks(lines):
    """Lists of (number, line)."""
    block, fence, before = [], None, ""
    for number, line in enumerate(lines, 1):
        opened = re.match(r" *```(\w*)", line)
        if opened:
            if block:
                yield block
            block, fence = [], (opened[1] or "sh") if fence is None else None
        elif fence is not None:
            if fence == "sh":
                block.append((number, line))
        elif line.startswith("    ") and (block or not before.strip()):
            block.append((number, line[4:]))
        elif block:
            yield block
            block = []
        before = line
    if block:
        yield block


def manual_blocks(lines):
    block, examples, literal = [], False, False
    for number, line in enumerate(lines, 1):
        text = line.replace("\\e", "\\").replace("\\(aq", "'").replace("\\&", "")
        if line.startswith(".Sh "):
            examples = line == ".Sh EXAMPLES"
        elif not examples:
            pass
        elif line.startswith(".Dl "):
            block.append((number, text[4:]))
            continue
        elif line.startswith((".Bd -literal", ".Ed")):
            literal = line.startswith(".Bd")
        elif literal:
            block.append((number, text))
            continue
        if block:
            yield block
        block = []
    if block:
        yield block


def pictures(lines):
    """(number, file), of those that the page shows."""
    for number, line in enumerate(lines, 1):
        for file in re.findall(r"!\[[^]]*\]\(([^)]*[.]svg)\)", line):
            yield number, file


def is_whole(text):
    ends = re.sub(r"\s#.*", "", text).rstrip()
    if ends.endswith(("&&", "|", "\\")):
        return False
    return subprocess.run(["bash", "-n"], input=text, text=True, stderr=subprocess.DEVNULL).returncode == 0


def commands(block):
    """(number, command), which may have several lines."""
    text, first = "", None
    for number, line in block:
        if not text and not line.strip():
            continue
        first = first if text else number
        text += line + "\n"
        if is_whole(text):
            yield first, text.rstrip()
            text = ""
    if text:
        raise Problem(f"line {first} begins what is no command, or not a whole one: {text}")


class Exceptions:
    """Those of a page."""

    def __init__(self, path, page):
        self.rules, self.used = [], set()
        with open(path) as f:
            lines = f.read().split("\n")
        at = None
        for number, line in enumerate(lines, 1):
            if line.startswith("["):
                at = line.strip("[]")
            elif at != page or not line or line[0] in "#\t":
                continue
            else:
                kind, rest = line.split(" ", 1)
                begins, _, what = rest.partition(" => ")
                if kind not in KINDS or bool(what) != (kind in ("as", "before", "status", "shows", "picture")):
                    raise Problem(f"{path}:{number}: not understood: {line}")
                if not lines[number].startswith("\t"):
                    raise Problem(f"{path}:{number}: no reason: {line}")
                self.rules.append((number, kind, begins, what))

    def of(self, text, kinds):
        for rule in self.rules:
            if rule[1] in kinds and text.startswith(rule[2]):
                self.used.add(rule)
                yield rule[1], rule[3]

    def stale(self):
        return [rule for rule in self.rules if rule not in self.used]


def main(source, exceptions, page):
    with open(f"{source}/{page}") as f:
        lines = f.read().split("\n")
    rules = Exceptions(exceptions, page)
    for block in manual_blocks(lines) if page.endswith(".in") else markdown_blocks(lines):
        if list(rules.of(block[0][1], ["text"])):
            continue
        shown = [what for _, what in rules.of(block[0][1], ["shows"])]
        if shown:
            first = [f"before={what}" for _, what in rules.of(block[0][1], ["before"])]
            text = "\n".join(line for _, line in block)
            print("shows", *map(shlex.quote, [f"{page}:{block[0][0]}", shown[0], text] + first))
            continue
        for number, command in commands(block):
            words = [f"{kind}={what}" for kind, what in rules.of(command, KINDS[2:])]
            if "read=" not in words:
                print("run", *map(shlex.quote, [f"{page}:{number}", command] + words))
    for number, file in pictures(lines):
        made = [what for _, what in rules.of(file, ["picture", "read"])]
        if not made:
            raise Problem(f"{page}:{number}: {exceptions} does not say how {file} is made")
        if made[0]:
            print("picture", *map(shlex.quote, [f"{page}:{number}", os.path.join(os.path.dirname(page), file), made[0]]))
    for number, kind, begins, what in rules.stale():
        raise Problem(f"{exceptions}:{number}: nothing in {page} fits: {kind} {begins}")


try:
    main(*sys.argv[1:])
except Problem as e:
    sys.exit(f"{sys.argv[3]}: {e}")
