#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Names that only the owner of the repository knows, which stand in packaging/owner.

owner.py REPOSITORY MAINTAINER   writes others there, and in every file that says them: owner.py me/umbel 'Me <me@example.org>'
owner.py --check                 whether documents and packages say those that stand there; the test docs.paths calls it"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OWNER = ROOT / 'packaging/owner'
FILES = [ROOT / name for name in ('README.md', 'docs/ci.md', 'docs/programs.md', 'debian/control', 'debian/changelog')]
# The words that name the repository, and the maintainer.
SAYS = {
    'repository': re.compile(r'(?:https://github\.com/(?=\S+/(?:releases|issues)|\S+ && cd)|uses: )([\w.-]+/[\w.-]+)'),
    'maintainer': re.compile(r'^(?:Maintainer: | -- )(.+?>)', re.M),
}


def names():
    """{'repository': ..., 'maintainer': ...}"""
    lines = [line for line in OWNER.read_text().splitlines() if not line.startswith('#')]
    return dict(line.split(' ', 1) for line in lines)


def check():
    """The exit status."""
    said, status = names(), 0
    for path in FILES:
        for key, pattern in SAYS.items():
            for found in pattern.findall(path.read_text()):
                if found != said[key]:
                    print(f"{path.relative_to(ROOT)}: says {found}; packaging/owner says {said[key]}")
                    status = 1
    for path in {*ROOT.glob('*.md'), *ROOT.glob('docs/*.md')} - {*FILES}:
        if said['repository'] in path.read_text():
            print(f"{path.relative_to(ROOT)}: says {said['repository']}, and is not in tools/owner.py's FILES")
            status = 1
    return status


def write(repository, maintainer):
    """In all files."""
    old, new = names(), {'repository': repository, 'maintainer': maintainer}
    for path in [OWNER, *FILES]:
        text = path.read_text()
        for key, value in new.items():
            text = text.replace(old[key], value)
        path.write_text(text)
    return check()


def main():
    if sys.argv[1:] == ['--check']:
        return check()
    if len(sys.argv) != 3 or sys.argv[1].startswith('-'):
        sys.exit(__doc__)
    return write(*sys.argv[1:])


sys.exit(main())
