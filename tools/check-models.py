#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# check-models.py [--accept [MODEL...]]: whether each model under tests/models was looked at since the
# functions that it models have changed. Its opening comment lists them:
#
#  *  src/shared/shm/ring.h shm_ring_claim 0123456789ab
#
# with a hash of the function's text, in which comments and white space do not count. --accept writes
# the hashes of today into these models, or into all. Called by tools/check-static.sh.

import hashlib
import pathlib
import re
import sys

ROW = re.compile(r'^( \*  )(src/\S+\.[ch]) (\w+)(?: ([0-9a-f]{12}))?$', re.M)
LINE = re.compile(r'^ \*  src/\S+\.[ch] \w+.*$', re.M)

QUOTED = r'"(?:\\.|[^"\\])*"' + r"|'(?:\\.|[^'\\])*'"
COMMENT = re.compile(r'(' + QUOTED + r')|/\*.*?\*/|//[^\n]*', re.S)
DIRECTIVE = re.compile(r'^[ \t]*#(?:[^\n\\]|\\.)*$', re.M | re.S)
TOKEN = re.compile(QUOTED + r'|\w+|\S', re.S)


def definitions(source):
    """The tokens of each thing that is defined or declared outside of all others."""
    depth, tokens = 0, []
    for token in TOKEN.findall(source):
        tokens.append(token)
        depth += (token in '({[') - (token in ')}]')
        if depth == 0 and token in '};':
            yield tokens
            tokens = []


def name_of(tokens):
    """That of the function which @tokens define: NAME ( ... ) { ... }. None: they define none."""
    opened = []
    for i, token in enumerate(tokens):
        if token == '{' and not opened:
            return None
        if token in '({[':
            opened.append(i)
        elif token in ')}]':
            begin = opened.pop()
            if token == ')' and not opened and tokens[i + 1:i + 2] == ['{']:
                return tokens[begin - 1]
    return None


def functions(path):
    """The hash of each function of a file, by name."""
    source = COMMENT.sub(lambda match: match[1] or ' ', path.read_text())
    source = DIRECTIVE.sub('', source)
    found = {}
    for tokens in definitions(source):
        name = name_of(tokens)
        if name:
            found[name] = hashlib.sha256(' '.join(tokens).encode()).hexdigest()[:12]
    return found


class Check:
    def __init__(self, root):
        self.root = root
        self.files = {}
        self.failed = False

    def complain(self, text):
        print(text)
        self.failed = True

    def hash_of(self, model, file, name):
        if file not in self.files:
            path = self.root / file
            self.files[file] = functions(path) if path.exists() else {}
        if name not in self.files[file]:
            self.complain(f'{model}: no function {name}() in {file}')
        return self.files[file].get(name)

    def compare(self, path):
        model = path.relative_to(self.root)
        rows = ROW.findall(path.read_text())
        if not rows:
            self.complain(f'{model}: names no function that it models')
        for line in LINE.findall(path.read_text()):
            if not ROW.fullmatch(line):
                self.complain(f'{model}: no file, function and hash: {line}')
        for _, file, name, known in rows:
            found = self.hash_of(model, file, name)
            if found and found != known:
                self.complain(f'{model}: {name}() in {file} is not what it was compared with')

    def accept(self, path):
        model = path.relative_to(self.root)

        def row(match):
            found = self.hash_of(model, match[2], match[3]) or match[4] or ''
            return f'{match[1]}{match[2]} {match[3]} {found}'.rstrip()

        path.write_text(ROW.sub(row, path.read_text()))


def main():
    check = Check(pathlib.Path(__file__).resolve().parent.parent)
    models = sorted((check.root / 'tests/models').glob('*.pml'))
    if sys.argv[1:2] == ['--accept']:
        for path in models:
            if not sys.argv[2:] or path.stem in sys.argv[2:]:
                check.accept(path)
    else:
        for path in models:
            check.compare(path)
        if check.failed:
            print('Look at these models: what is not true any more is changed there, and in '
                  'docs/memory-order.md.\nWhen their tests pass (models.*): '
                  'tools/check-models.py --accept MODEL...')
    sys.exit(check.failed)


main()
