#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the tests that have a fabric on a weak one, by many seeds: weak-suites.py [OPTION]... BUILD [SUITE]...

A fabric is weak by the environment, UMBEL_WEAK: all that a test starts meets the seed's choices (docs/weak.md). A suite is a
row of SUITES. tests/weak/strong lists cases that are about what the strong fabric adds, each with the reason: they are left out
(UMBEL_TEST_LEFT_OUT). A failure's output is in BUILD/weak-suites/TEST.SEED. Exit status: 0: all passed; 1: some failed, or there are no such tests.

  --list        the suites
  --seeds N     so many seeds, and not the suite's own number
  --from SEED   the first of them (1)
  --limit S     a test that takes longer hangs (600 s)
  --jobs N      tests that run side by side (the processors)
  -R REGEX      of the suite's tests those whose names it fits"""

import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

Suite = collections.namedtuple('Suite', 'seeds kinds tests about')
# A datagram that is lost is lost: programs that do not ask for it again wait for ever. They meet all else.
NO_LOSS = 'gather,place,complete,cm'
SUITES = {
    'verbs': Suite(3, NO_LOSS, r'^verbs[.]', 'our tests of libibverbs'),
    'rdmacm': Suite(3, NO_LOSS, r'^rdmacm[.]', 'our tests of librdmacm'),
    'perftest': Suite(10, NO_LOSS, r'^system[.]perftest|^weak[.]perftest', 'perftest: SEND, WRITE, READ, atomics; RC, UC, UD'),
    'pingpong': Suite(10, NO_LOSS, r'^system[.](ibv_.*_pingpong|rping|ucmatose|udaddy|udpong|rstream|cmtime|qperf)$',
                      "examples of rdma-core, qperf"),
    'rsockets': Suite(10, '', r'^system[.](rspreload|sockets_.*)$', 'sockets that are rsockets'),
    'examples': Suite(10, NO_LOSS, r'^examples[.]', 'our examples'),
    'ipoib': Suite(3, NO_LOSS, r'^ipoib[.]', 'umbel-ipoib, umbel run --ipoib'),
    'ucx': Suite(10, '', r'^system[.]ucx', 'ucx_perftest'),
    'libfabric': Suite(10, NO_LOSS, r'^system[.]libfabric$', 'fi_pingpong'),
    'mpi': Suite(10, '', r'^system[.]mpi$', 'Open MPI, MPICH over UCX'),
    'mpi_libfabric': Suite(10, NO_LOSS, r'^system[.]mpi_libfabric$', 'Open MPI over libfabric'),
    'ai': Suite(10, NO_LOSS, r'^ai[.](net_ib|engine)$', "the calls of NCCL's net_ib and of Mooncake"),
    'pyverbs': Suite(3, NO_LOSS, r'^pyverbs[.]ib$', "rdma-core's Python suite"),
}
ROOT = pathlib.Path(__file__).resolve().parent.parent
ALL_CASES = '*'


def parse_arguments():
    parser = argparse.ArgumentParser(usage='weak-suites.py [OPTION]... BUILD [SUITE]...', description=__doc__.split('\n\n', 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', metavar='BUILD', nargs='?', default='build/release')
    parser.add_argument('suites', metavar='SUITE', nargs='*')
    parser.add_argument('--list', action='store_true')
    for name, default in ('seeds', 0), ('from', 1), ('limit', 600), ('jobs', os.cpu_count()):
        parser.add_argument('--' + name, type=int, default=default, dest=name.replace('from', 'first'))
    parser.add_argument('-R', default='', dest='only')
    a = parser.parse_args()
    unknown = set(a.suites) - set(SUITES)
    if unknown:
        parser.error(f"no suite '{unknown.pop()}'; there are {', '.join(SUITES)}")
    return a


def tests_of(build):
    """All tests of the build, by name: as ctest would run them."""
    text = subprocess.run(['ctest', '--test-dir', build, '--show-only=json-v1'], stdout=subprocess.PIPE, check=True).stdout
    return {test['name']: test for test in json.loads(text)['tests'] if 'command' in test}


def strong_cases(path):
    """Of each test those cases, ALL_CASES among them if it is not run at all. A line is "TEST CASE...: REASON"; both may be patterns."""
    rows = []
    for line in open(path):
        if line.strip() and not line.startswith('#'):
            test, *cases = line.split(':')[0].split()
            rows.append((test, cases))
    return rows


def cases_of(rows, test):
    """Patterns of what is left out. A case has a second half if it runs in another process, too."""
    cases = [case for row, cases in rows if fnmatch.fnmatchcase(test, row) for case in cases]
    return cases + [f'{case}__elsewhere' for case in cases]


def property_of(test, name, default):
    return next((p['value'] for p in test.get('properties', []) if p['name'] == name), default)


def run(test, weak, left_out, limit):
    """Runs the test once, without the cases that it is told to leave out. Its status, 0 if it passed, and what it printed."""
    environment = dict(os.environ, UMBEL_WEAK=weak, UMBEL_TEST_SECONDS=str(limit), UMBEL_TEST_LEFT_OUT=' '.join(left_out))
    environment.update(line.split('=', 1) for line in property_of(test, 'ENVIRONMENT', []))
    child = subprocess.Popen(test['command'], cwd=property_of(test, 'WORKING_DIRECTORY', '.'), env=environment,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output = child.communicate(timeout=limit)[0]
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGTERM)
        try:
            output = child.communicate(timeout=20)[0]
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            output = child.communicate()[0]
        return -1, output + f'\nhangs: it was ended after {limit} s\n'.encode()
    skipped = property_of(test, 'SKIP_RETURN_CODE', 0)
    return 0 if child.returncode in (0, skipped) else child.returncode, output + f'\nstatus {child.returncode}\n'.encode()


def set_up(all_tests, wanted):
    """Runs what must run before the tests, once each."""
    needed = {name for test in wanted for name in property_of(test, 'FIXTURES_REQUIRED', [])}
    for test in all_tests.values():
        if needed & set(property_of(test, 'FIXTURES_SETUP', [])):
            subprocess.run(test['command'], check=True)


def runs_of(a, all_tests, strong):
    """(suite, test, what UMBEL_WEAK is), for each that is to be run."""
    for name in a.suites or SUITES:
        suite = SUITES[name]
        for seed in range(a.first, a.first + (a.seeds or suite.seeds)):
            for test in all_tests.values():
                if re.search(suite.tests, test['name']) and re.search(a.only, test['name']) and \
                   ALL_CASES not in cases_of(strong, test['name']):
                    yield name, test, f'{seed},{suite.kinds}'.rstrip(',')


def say_suites(all_tests):
    for name, suite in SUITES.items():
        n = sum(bool(re.search(suite.tests, test)) for test in all_tests)
        print(f'{name:13} {n:4} tests, {suite.seeds:2} seeds  {suite.kinds or "all kinds":24}  {suite.about}')


def main():
    a = parse_arguments()
    all_tests = tests_of(a.build)
    if a.list:
        say_suites(all_tests)
        return 0
    strong = strong_cases(ROOT / 'tests/weak/strong')
    folder = pathlib.Path(a.build, 'weak-suites')
    folder.mkdir(exist_ok=True)
    passed, failed = collections.Counter(), collections.defaultdict(list)
    begun = time.monotonic()
    runs = list(runs_of(a, all_tests, strong))
    set_up(all_tests, [test for _, test, _ in runs])
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        futures = {pool.submit(run, test, weak, cases_of(strong, test['name']), a.limit): (suite, test['name'], weak)
                   for suite, test, weak in runs}
        for done in concurrent.futures.as_completed(futures):
            suite, name, weak = futures[done]
            (status, output), seed = done.result(), weak.split(',')[0]
            if not status:
                passed[suite] += 1
                continue
            (folder / f'{name}.{seed}').write_bytes(output)
            failed[suite].append(f'{name} {seed}')
            print(f'{name} fails: UMBEL_WEAK={weak}; {folder}/{name}.{seed}', flush=True)
    print('suite         seeds  passed  failed')
    for name in a.suites or SUITES:
        print(f'{name:13} {a.seeds or SUITES[name].seeds:5}  {passed[name]:6}  {len(failed[name]):6}')
        if not passed[name] + len(failed[name]):
            failed[name].append('no test')
    print(f'{time.monotonic() - begun:.0f} s')
    return 1 if any(failed.values()) else 0


sys.exit(main())
