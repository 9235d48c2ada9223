#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs tests of a build, and says what they cover: test.py BUILD [--all | --rest] [--changed] [ARGUMENT]...

The quick tests (tests/quick) without an option, all of them with --all, all but the quick ones with --rest. The arguments go to
ctest: -R NAME, -E NAME, -V, -N and others. Called by ./run test.

--changed leaves out the tests of a part (PARTS), but for quick ones, if by tests/passed that part has passed them as it is now.
A run that has passed all of these writes the part's row there, if UPDATE is in the environment.

On a terminal one line shows how far the tests are. Elsewhere ctest's own lines do.
Exit status: 0: all passed; 1: some failed, or no test has such a name."""

import collections
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

# The families of tests by the first part of their names, in the order in which they are told. Other tests are unit tests.
FAMILIES = {
    'verbs': 'verbs', 'rdmacm': 'rdma_cm', 'umad': 'umad', 'system': "Debian's programs and umbel's commands", 'roce': 'RoCEv2',
    'interop': 'Linux in virtual machines', 'hosts': 'hosts that are namespaces', 'ipoib': 'IPoIB', 'ibsim': "ibsim's clients", 'router': 'routers',
    'pyverbs': "rdma-core's Python suite", 'sysfs': '/sys and /dev', 'simulate': 'simulations', 'property': 'random steps',
    'death': 'deaths of processes', 'adversary': 'hostile programs', 'models': 'models', 'kubernetes': 'Kubernetes',
    'examples': 'examples', 'libumbel': 'libumbel', 'guests': 'programs of more packages', 'ai': 'the calls of NCCL and Mooncake', 'abi': 'the ABI', 'instructions': 'instruction counts', 'docs': 'documents',
    'reach': 'packages and other systems',
}
# Parts that no other part uses: their tests, and their files. The headers that these include show what a part uses.
PARTS = {
    'archive': (r'^reach[.]archive$', 'tools/package.sh tools/wheel.py tests/reach/archive.sh packaging/CMakeLists.txt src/client/api/umbel/python'),
    'guests': (r'^guests[.]', 'tests/guests'),
    'check': (r'^check[.]|^subnet[.]sm_check$|^system[.](check|opensm_check)$',
              'src/shared/check src/command/cli/check src/server/subnet/sm_check_test.c tests/system/*check.sh'),
    'counters': (r'^system[.]counters_agree$', 'src/server/fabric/agents/pma*.c tests/system/counters_agree.sh'),
    'ibsim': (r'^ibsim[.]', 'programs/ibsim'),
    'ipoib': (r'^ipoib[.]', 'programs/ipoib'),
    'queries': (r'^property[.]sa_requests$', 'src/server/subnet/sa*.c tests/property/sa_requests.py'),
    'router': (r'^router[.]', 'src/server/daemon/router tests/router'),
    'simulate': (r'^(system[.])?simulate', 'src/command/simulate src/command/cli/simulate tests/simulate tests/system/simulate*'),
    'sockets': (r'^system[.](sockets_.*|rspreload)$',
                'src/client/sockets src/client/api/rdmacm/rsocket tests/system/sockets* tests/system/rspreload*'),
}
ROOT = pathlib.Path(__file__).resolve().parent.parent
PASSED = ROOT / 'tests/passed'
CHOOSES = re.compile(r'(-R|-E|-L|-LE|--tests-regex|--exclude-regex|--label-regex|--label-exclude)(=.*)?$')
ENDED = re.compile(r'^ *(\d+)/(\d+) Test +#\d+: (\S+) \.*(\*\*\*| +)(\w+)')


def quick_ones(path):
    """A function that says whether a test of that name is quick."""
    lines = [line.strip() for line in open(path)]
    wanted, unwanted = (re.compile('|'.join(line[1:].strip() for line in lines if line.startswith(sign))) for sign in '+-')
    return lambda name: bool(wanted.search(name) and not unwanted.search(name))


def listed(build, arguments):
    """The tests that these arguments choose: numbers by name."""
    text = subprocess.run(['ctest', '--test-dir', build, '-N'] + arguments, stdout=subprocess.PIPE, text=True, check=True).stdout
    return {match[2]: match[1] for match in re.finditer(r'^ *Test *#(\d+): (\S+)', text, re.M)}


def included(path):
    """The files of ours that this one includes."""
    roots = [path.parent, ROOT / 'programs', ROOT / 'tests', *(ROOT / 'src').iterdir()]
    for name in re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', path.read_text(errors='replace'), re.M):
        yield from [root / name for root in roots if (root / name).is_file()][:1]


def state(part):
    """A hash of all files of a part, and of the headers that these include."""
    found, new = set(), []
    for pattern in PARTS[part][1].split():
        tops = list(ROOT.glob(pattern))
        if not tops:
            sys.exit(f'test: {part}: there is no {pattern}')
        new += [path for top in tops for path in (top.rglob('*') if top.is_dir() else [top])]
    while new:
        path = new.pop().resolve()
        if path.is_file() and path not in found and '__pycache__' not in path.parts:
            found.add(path)
            new += included(path) if path.suffix in ('.c', '.h', '.def') else []
    return hashlib.sha256(b''.join(sorted(path.read_bytes() for path in found))).hexdigest()[:16]


def rows():
    """The rows of tests/passed: the state by part and build."""
    lines = PASSED.read_text().splitlines() if PASSED.exists() else []
    return {tuple(line.split()[:2]): line.split()[2] for line in lines if not line.startswith('#')}


def part_of(name, is_quick):
    """The part of which this is a long test, or None."""
    return next((part for part, (tests, _) in PARTS.items() if not is_quick(name) and re.search(tests, name)), None)


def unchanged(build):
    """The parts that have passed their long tests in such a build as they are now."""
    passed = rows()
    return {part for part in PARTS if passed.get((part, os.path.basename(build))) == state(part)}


def note_passed(build, chosen, is_quick):
    """Writes that these parts have passed their tests: all of them were run."""
    passed = rows()
    for part in PARTS:
        if all(name in chosen for name in listed(build, []) if part_of(name, is_quick) == part):
            passed[part, os.path.basename(build)] = state(part)
    head = '# PART BUILD HASH: that part has passed its long tests as it is; tools/test.py --changed leaves them out.\n'
    PASSED.write_text(head + ''.join(' '.join([*key, value]) + '\n' for key, value in sorted(passed.items())))


def without_choice(arguments):
    """The arguments but for those that choose tests: of the tests that these leave, ctest would take -I's numbers."""
    rest, takes_next = [], False
    for argument in arguments:
        match = CHOOSES.match(argument)
        if takes_next or match:
            takes_next = bool(match) and not match[2]
        elif not re.match('-[REL].', argument):
            rest.append(argument)
    return rest


def covered(names):
    """In words: how many tests of which families."""
    count = collections.Counter(name.split('.')[0] for name in names)
    told = [f'{count[family]} {words}' for family, words in FAMILIES.items() if count[family]]
    units = sum(n for family, n in count.items() if family not in FAMILIES)
    return ', '.join(([f'{units} unit tests'] if units else []) + told)


def follow(ctest, total):
    """Shows how far ctest is, on one line. Returns its exit status."""
    began, failed, done = time.monotonic(), 0, 0
    for line in ctest.stdout:
        match = ENDED.match(line)
        if not match:
            continue
        done += 1
        name, bad = match[3], match[5] not in ('Passed', 'Skipped')
        if bad:
            failed += 1
            print(f'\r\033[Kfailed: {name}')
        seconds = int(time.monotonic() - began)
        text = f'{done} of {total} tests, {failed} failed, {seconds // 60}:{seconds % 60:02}  {name}'
        print('\r\033[K' + text[:shutil.get_terminal_size().columns - 1], end='', flush=True)
    print('\r\033[K', end='')
    return ctest.wait()


def show_failures(path):
    """The complaints and last lines of the failed tests, which are hard to find among those that ran beside them."""
    for test in xml.etree.ElementTree.parse(path).getroot().iter('testcase'):
        if test.find('failure') is None:
            continue
        lines = (test.findtext('system-out') or '').splitlines()
        shown = [line[:300] for line in lines if line.startswith('FAIL')][:12]
        shown += ['...'] * (len(lines) > 25) + lines[-25:]
        print(f"\n{test.get('name')}:", *shown, sep='\n  ')


def run(build, chosen, arguments):
    """Runs these tests. Returns ctest's exit status."""
    # not in a file that a test which runs ctest writes anew
    results, log = (os.path.join(build, 'Testing', name) for name in ('results.xml', 'chosen'))
    os.makedirs(os.path.dirname(log), exist_ok=True)
    numbers = sorted(chosen.values(), key=int)
    with open(log, 'w') as out:
        out.write(','.join([numbers[0], numbers[0], ''] + numbers) + '\n')
    # twice as many as processors: tests wait more than they compute
    command = ['ctest', '--test-dir', build, '--output-on-failure', '--output-junit', os.path.abspath(results), '-I', os.path.abspath(log),
               '-j', str(2 * os.cpu_count())] + without_choice(arguments)
    if not sys.stdout.isatty() or {'-V', '-VV', '--verbose'} & set(arguments):
        status = subprocess.run(command).returncode
    else:
        status = follow(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors='replace'), len(numbers))
    if status:
        show_failures(results)
    return status


def main():
    build, arguments = sys.argv[1], [argument for argument in sys.argv[2:] if argument != '--changed']
    which = arguments.pop(0) if arguments[:1] in (['--all'], ['--rest']) else ''
    is_quick = quick_ones(ROOT / 'tests/quick')
    numbers = listed(build, [])  # -E would number those that it leaves
    chosen = {name: numbers[name] for name in listed(build, arguments) if which == '--all' or is_quick(name) == (which == '')}
    if '--changed' in sys.argv:
        same = unchanged(build)
        left_out = [name for name in chosen if part_of(name, is_quick) in same]
        chosen = {name: number for name, number in chosen.items() if name not in left_out}
        if left_out:
            print(f'Left out, as they have passed before: {covered(left_out)}', flush=True)
    if not chosen:
        hint = '' if which else ': ./run test --all has more'
        sys.exit(f'test: no test of these has such a name{hint}')
    if '-N' in arguments:
        print(*chosen, sep='\n')
        return 0
    print(f'Testing {build}: {covered(chosen)}', flush=True)
    began = time.monotonic()
    status = run(build, chosen, arguments)
    if not status and 'UPDATE' in os.environ:
        note_passed(build, chosen, is_quick)
    print(f'{len(chosen)} tests took {time.monotonic() - began:.0f} s' + ('; some failed' if status else ': all passed'))
    if not which and not arguments:
        more = [name for name in listed(build, []) if not is_quick(name)]
        print(f'They cover: {covered(chosen)}.\n./run test --all adds: {covered(more)}.')
    return 1 if status else 0


sys.exit(main())
