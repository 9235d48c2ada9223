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


def test_an_idle_rule(umbel_fault):
    """Nothing is sent."""
    umbel_fault("to=h2:* drop")
