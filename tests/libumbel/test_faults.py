# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tests for pytest's plugin: a rule that fires, one that does not."""

import json
import socket
import subprocess

import umbel


def pingpong():
    """Datagrams between h1 and h2, by Debian's own program. Its client may come before the server listens."""
    with socket.create_server(("localhost", 0)) as unused:
        port = str(unused.getsockname()[1])
    command = ["ibv_ud_pingpong", "-n", "5", "-p", port]
    with subprocess.Popen(["umbel", "exec", "h2", "--", *command]) as server:
        while subprocess.run(["umbel", "exec", "h1", "--", *command, "localhost"], check=False).returncode:
            assert server.poll() is None, "the server has ended"
        assert server.wait() == 0


def test_a_rule_fires(umbel_fault):
    """Each packet comes late, and is counted."""
    fault = umbel_fault("to=h2:* delay=1ms")
    pingpong()
    assert fault.fired() >= 5


def test_rules_are_cleared():
    """The rule of the test before is no more."""
    assert json.loads(umbel.ask("fault", "show", "--json")) == []


def test_one_within_another():
    """The end of the inner one leaves the outer one as it is."""
    with umbel.fault("qp=h1:* delay=1ms"):
        with umbel.fault("to=h2:* delay=1ms"):
            pingpong()
        pingpong()


def test_a_capture(umbel_capture):
    """What is sent is in it, and nothing else."""
    mads, data = umbel_capture(), umbel_capture("--data", "h2")
    pingpong()
    assert data.end() >= 10 and data.end() == data.packets and data.lost == 0
    assert mads.end() == 0
    decoded = subprocess.run(["tshark", "-r", data.path], check=True, capture_output=True, text=True).stdout
    assert decoded.count("UD Send Only") >= 10, decoded


def test_a_capture_of_nothing(tmp_path):
    """It says what is wrong."""
    for path, options, why in (tmp_path, [], "cannot write"), (tmp_path / "x", ["h9"], "no node 'h9'"):
        try:
            umbel.capture(path, *options)
            assert False, why
        except umbel.Error as error:
            assert why in str(error), error
    with umbel.capture(tmp_path / "empty"):
        pass
    assert (tmp_path / "empty").stat().st_size > 0


def test_an_idle_rule(umbel_fault):
    """Nothing is sent."""
    umbel_fault("to=h2:* drop")
