# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pytest on a fabric: pytest -p umbel_pytest --umbel='--hosts 4' tests/

All tests run on one fabric, of which `umbel run` takes these options. The fixture `umbel_fault` adds a rule of
umbel-fault(1); when the test ends, its rules that have not fired fail it, and they are cleared. The fixture `umbel_capture`
begins a capture of umbel-capture(1) to a file in the test's `tmp_path`, which ends with the test.
"""

import os
import shlex

import pytest
import umbel


def pytest_addoption(parser):
    """--umbel."""
    parser.addoption("--umbel", metavar="OPTIONS", help="run on a fabric that umbel run makes with these options")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Before anything is collected or printed."""
    options = config.getoption("umbel")
    if options is None or os.environ.get("UMBEL_FABRIC"):
        return
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture:
        capture.suspend_global_capture(in_=True)
    umbel.enter(*shlex.split(options))


@pytest.fixture
def umbel_fault():
    """A function that adds a rule, and returns its umbel.Fault."""
    faults = []

    def add(rule):
        faults.append(umbel.fault(rule))
        return faults[-1]

    yield add
    idle = [fault.rule for fault in faults if not fault.fired()]
    for fault in faults:
        fault.clear()
    assert not idle, f"these faults have not fired: {idle}"


@pytest.fixture
def umbel_capture(tmp_path):
    """A function that begins a capture with the options of umbel-capture(1), and returns its umbel.Capture."""
    captures = []

    def begin(*options):
        captures.append(umbel.capture(tmp_path / f"capture-{len(captures)}.pcapng", *options))
        return captures[-1]

    yield begin
    for capture in captures:
        capture.end()
