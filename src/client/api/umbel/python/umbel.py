# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A fabric for a unit test, as umbel.h has it for C: see umbel(3).

    import umbel
    umbel.enter("--hosts", "2")             # goes on in a fabric of its own
    with umbel.fault("to=h2:* nth=1 drop"):
        ...                                 # Error in the end, unless it has fired

Each function runs the command umbel of the PATH, or else that of Python's virtual environment. What fails raises umbel.Error,
which says why.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig


class Error(Exception):
    """The command has failed; its words."""


def _command():
    """The command: the PATH's, or that of an environment which is not active."""
    beside = os.path.join(sysconfig.get_path("scripts"), "umbel")
    return "umbel" if shutil.which("umbel") or not os.path.exists(beside) else beside


def enter(*options):
    """Becomes `umbel run OPTION... -- PYTHON ...`, which runs this program anew, unless it runs on a fabric already."""
    if os.environ.get("UMBEL_FABRIC"):
        return
    sys.stdout.flush()
    sys.stderr.flush()
    with open("/proc/self/cmdline", "rb") as line:  # sys.orig_argv is newer than Python 3.9
        arguments = line.read().split(b"\0")[1:-1]
    command = [_command(), "run", *options, "--", sys.executable, *arguments]
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise Error(f"cannot run umbel: {error.strerror}") from error


def ask(*arguments):
    """What `umbel ARGUMENT...` prints."""
    try:
        done = subprocess.run(
            [_command(), *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise Error(f"cannot run umbel: {error.strerror}") from error
    if done.returncode:
        raise Error(done.stderr.strip() or "umbel has failed and does not say why")
    return done.stdout


def show(what, *options):
    """A view of umbel-show(1): its JSON as lists, dictionaries, numbers and text."""
    return json.loads(ask("show", *what.split(), *options, "--json"))


def _word(text):
    """A name or a rule, not an option of the command."""
    if text.startswith("-"):
        raise Error(f"'{text}' begins with '-'")
    return text


def link(port, up):
    """Takes the link at a port ("h2:1", "sw1:3") down, or up again."""
    ask("link", "up" if up else "down", _word(port))


def switch(name, alive):
    """Kills a switch, or revives it."""
    ask("switch", "revive" if alive else "kill", _word(name))


def counter(port, name):
    """What a port has counted: a key of show("counters")."""
    node, _, number = port.rpartition(":")
    if not node or not re.fullmatch("[0-9]{1,3}", number):
        raise Error(f"'{port}' is no port: write NODE:PORT, as in h2:1")
    for host in show("hosts"):
        if host["name"] == node and host["hcas"]:
            node = host["hcas"][0]["name"]
    for counted in show("counters")["ports"]:
        if counted["node"] == node and counted["port"] == int(number) and name in counted:
            return counted[name]
    raise Error(f"port {number} of '{node}' has no counter '{name}'")


def wait_group(group, members=0, attached=1, seconds=60):
    """Waits until a multicast group has so many members and attached queue pairs."""
    ask("wait", "--group", group, "--members", members, "--attached", attached, "--timeout", seconds)


class Fault:
    """A rule of umbel-fault(1), until it is cleared. As a context it must have fired in the end, and is cleared then."""

    def __init__(self, rule):
        self.rule = rule
        self.number = int(ask("fault", "add", _word(rule)))

    def fired(self):
        """How many packets it has met."""
        for rule in json.loads(ask("fault", "show", "--json")):
            if rule["number"] == self.number:
                return rule["fired"]
        raise Error(f"there is no rule {self.number}")

    def clear(self):
        """Ends the rule."""
        ask("fault", "clear", self.number)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        fired = self.fired()
        self.clear()
        if not fired and kind is None:
            raise Error(f"the fault '{self.rule}' has not fired")


def fault(rule):
    """Adds a rule by which packets get lost, late, damaged ...: a Fault."""
    return Fault(rule)


def clear_faults():
    """Ends all rules."""
    ask("fault", "clear")


class Capture:
    """Packets on their way to a file, as umbel-capture(1) writes it. As a context it ends with that."""

    def __init__(self, path, *options):
        self.path = os.fspath(path)
        self.packets = self.lost = None  # how many, once it has ended
        command = [_command(), "capture", "--output", self.path, *map(str, options)]
        try:
            self._process = subprocess.Popen(  # pylint: disable=consider-using-with
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise Error(f"cannot run umbel: {error.strerror}") from error
        said = ""
        for said in self._process.stderr:
            if "capturing on fabric" in said:
                return
        self._process.communicate()
        raise Error(said.strip() or "umbel has failed and does not say why")

    def end(self):
        """Ends it: all that was sent before is in the file. How many packets that are."""
        if self.packets is not None:
            return self.packets
        self._process.send_signal(signal.SIGINT)
        said = self._process.communicate()[1]
        counts = re.search(r"(\d+) packets captured, (\d+) lost", said)
        if self._process.returncode or not counts:
            raise Error(said.strip().rpartition("\n")[2] or "umbel does not say what it has captured")
        self.packets, self.lost = map(int, counts.groups())
        return self.packets

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def capture(path, *options):
    """Captures packets to a file, with options such as "--data": a Capture."""
    return Capture(path, *options)
