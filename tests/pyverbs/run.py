#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Runs rdma-core's Python test suite on the fabric around it, and holds the outcome against a list:

    run.py SUITE EXPECTED LINK DEVICE=ADDRESS

SUITE is the folder that suite.sh fills, LINK is ib or roce. The suite finds the IP address of a
device in sysfs or by rdma(8), where ours are not: ADDRESS is what it would find. Each test runs in a
process of its own. EXPECTED has a line for each test that is to pass, and for each reason why another
one may be skipped; what else happens is a failure. Of a suite that is newer than the list new tests may
pass, or be skipped, and listed ones be gone.
"""

import fnmatch
import multiprocessing
import os
import re
import signal
import sys
import unittest

SECONDS = 60  # for one test


class Expected:
    """
    Lines of the file: "pass TEST", "pass-ib TEST", "pass-roce TEST", "skip REGEX", "never REGEX",
    "never-roce REGEX" (tests by name that are not run at all), "newest RELEASE" (of rdma-core, that the list
    is for). After TEST may follow "from RELEASE" and "to RELEASE": the first and the last one that has it.
    """

    def __init__(self, path, link, release):
        self.passes, self.skips, self.never = set(), [], []
        self.is_newer = False
        with open(path, encoding='utf-8') as file:
            for line in file:
                word, _, rest = line.split('#')[0].strip().partition(' ')
                if word in ('pass', 'pass-' + link):
                    test, *limits = rest.split()
                    limits = dict(zip(limits[::2], map(int, limits[1::2])))
                    if limits.get('from', release) <= release <= limits.get('to', release):
                        self.passes.add(test)
                elif word == 'newest':
                    self.is_newer = release > int(rest)
                elif word == 'skip':
                    self.skips.append(re.compile(rest.strip()))
                elif word in ('never', 'never-' + link):
                    self.never.append(re.compile(rest.strip()))

    def is_run(self, name):
        return not any(n.search(name) for n in self.never)

    def complaint(self, name, outcome, reason):
        """What is wrong about that; None: it is as expected."""
        if name in self.passes:
            return None if outcome == 'pass' else f'{outcome}, but is to pass: {reason}'
        if self.is_newer and outcome in ('skip', 'pass'):
            return None
        if outcome == 'skip':
            known = any(s.search(reason) for s in self.skips)
            return None if known else f'is skipped, and nobody knows why: {reason}'
        if outcome == 'pass':
            return 'passes, but is not listed'
        return f'{outcome}: {reason}'

    def missing(self, seen):
        """The tests that are to pass and are not there."""
        return set() if self.is_newer else self.passes - seen


def release_of(suite):
    """Of rdma-core, whose suite it is: 44 of 44.0-2."""
    with open(os.path.join(suite, 'version'), encoding='utf-8') as file:
        return int(file.read().split('.')[0])


def load(suite, address):
    """The tests, which take the place of the IP address that sysfs does not have."""
    sys.path[:0] = [suite, os.path.join(suite, 'tests')]
    sys.argv[1:] = []
    import args_parser
    args_parser.parser.parse_args()
    import tests
    from tests.base import RDMATestCase

    def add_address(self, device, port, gid):
        self.args.append([device, port, gid, address.get(device), None])

    RDMATestCase._get_ip_mac = add_address
    return unittest.defaultTestLoader.loadTestsFromModule(tests)


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


def outcome_of(test):
    """Runs it. Its outcome and the reason for that."""
    result = unittest.TestResult()
    test.run(result)
    if result.errors or result.failures:
        text = (result.errors + result.failures)[0][1].strip()
        return 'fails', text
    if result.skipped:
        return 'skip', result.skipped[0][1]
    return 'pass', ''


def run_child(test, pipe):
    os.setpgid(0, 0)
    outcome, reason = outcome_of(test)
    with os.fdopen(pipe, 'w') as out:
        out.write(f'{outcome}\n{reason}')
    sys.stdout.flush()
    os._exit(0)


def is_left_out(name):
    """Whether tools/weak-suites.py leaves it out."""
    return any(fnmatch.fnmatchcase(name, p) for p in os.environ.get('UMBEL_TEST_LEFT_OUT', '').split())


class TooLong(Exception):
    pass


def on_alarm(*_):
    raise TooLong


def run_apart(test):
    """The same, in a process of its own, which may crash or hang."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        run_child(test, theirs)
    os.close(theirs)
    signal.alarm(SECONDS)
    try:
        with os.fdopen(ours) as text:
            outcome, _, reason = text.read().partition('\n')
        _, status = os.waitpid(child, 0)
    except TooLong:
        outcome, reason = 'fails', f'runs longer than {SECONDS} s'
        os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    signal.alarm(0)
    return (outcome, reason) if outcome else ('fails', f'its process ends with status {status}')


def main():
    suite, path, link, addresses = sys.argv[1:]
    expected = Expected(path, link, release_of(suite))
    wrong, count, seen = [], {}, set()
    signal.signal(signal.SIGALRM, on_alarm)
    multiprocessing.set_start_method('fork')  # from 3.14 on Python wants to pickle the test otherwise
    for test in flatten(load(suite, dict([addresses.split('=')]))):
        name = test.id()
        if not expected.is_run(name):
            continue
        if is_left_out(name):
            seen.add(name)
            continue
        outcome, reason = run_apart(test)
        seen.add(name)
        count[outcome] = count.get(outcome, 0) + 1
        print(f'{outcome:5} {name} {reason.splitlines()[-1] if reason else ""}', flush=True)
        complaint = expected.complaint(name, outcome, reason)
        if complaint:
            wrong.append(f'{name} {complaint}')
    wrong += [f'{name} is listed, but there is no such test' for name in expected.missing(seen)]
    print(', '.join(f'{n} {outcome}' for outcome, n in sorted(count.items())))
    for line in wrong:
        print('FAIL:', line)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
