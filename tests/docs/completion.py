#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
completion.py SHARE SETTINGS [nobody]: a person presses keys in a real bash, which loads bash-completion, and that
loads our completion from SHARE/bash-completion/completions when it is first needed. M-* inserts all that
readline would complete; the line is then printed word by word instead of being run.

umbel and a fabric of three hosts must be there; tests/docs/completion.sh starts it. With "nobody" there
is none that replies.
"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

RC = """
. /usr/share/bash-completion/bash_completion
bind 'set bell-style none' 'set enable-bracketed-paste off' 'set horizontal-scroll-mode off'
bind '"\\e*": insert-completions'
PS1='READY> '
_umbel_seconds={}
"""

SETTINGS = sys.argv[2].split()


def statuses():
    """As `umbel explain wc` names them, without what may be left out."""
    names = []
    for number in range(24):
        said = subprocess.run(["umbel", "explain", "wc", str(number)], check=True, stdout=subprocess.PIPE, text=True).stdout
        names.append(said.split(",")[0].removeprefix("IBV_WC_").removesuffix("_ERR"))
    return names


def source(name):
    """A source file's text."""
    root = os.path.dirname(os.path.abspath(__file__)) + "/../../src/"
    with open(root + name, encoding="utf-8") as file:
        return file.read()


def rule_words():
    """As the daemon reads them."""
    table = source("server/daemon/detour/rules.c").split("} words[] = {")[1].split("};")[0]
    return [name + ("" if read == "NULL" else "=") for name, read in re.findall(r'{ "(\w+)", (\w+), ', table)]


def views(command):
    """As the help lists them; docs.man compares the help with the command."""
    text = subprocess.run(["umbel", command, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return re.findall(r"^  ([a-z]+)  ", text, re.MULTILINE)


STATUSES = statuses()
RULE = rule_words()
COMMANDS = re.findall(r"^\tX\((\w+)\)", source("command/cli/main.c"), re.MULTILINE)

# The words that are typed, and those that completion must offer for the last one.
CASES = [
    ("umbel ", COMMANDS + ["help", "--help", "--version"]),
    ("umbel st", ["status"]),
    ("umbel help sta", ["status"]),
    ("umbel show ", views("show")),
    ("umbel show --json g", ["groups", "group"]),
    ("umbel show -n default t", ["topology"]),
    ("umbel show --name=d", ["--name=default"]),
    ("umbel show --name ", ["default"]),
    ("umbel show routes ", ["sw1"]),
    ("umbel show hosts ", []),
    ("umbel top ", views("top")),
    ("umbel top --interval 2 co", ["connections"]),
    ("umbel top groups ", []),
    ("umbel explain --from h1 --to h", ["h1", "h2", "h3"]),
    ("umbel explain ", ["wc", "rule"]),
    ("umbel explain rule ove", ["overlapping-buffers"]),
    ("umbel explain wc RETRY_EXC --q", ["--qp"]),
    ("umbel explain --rkey 1 --host h", ["h1", "h2", "h3"]),
    ("umbel explain --rkey 1 --op ", ["write", "read", "atomic"]),
    ("umbel show --svg path ", ["h1", "h2", "h3", "sw1"]),
    ("umbel show path h1 h", ["h1", "h2", "h3"]),
    ("umbel show --svg group ", ["ff12:401b:ffff::ffff:ffff"]),
    ("umbel show topology --svg -o /etc/hostn", ["/etc/hostname"]),
    ("umbel exec ", ["h1", "h2", "h3", "--"]),
    ("umbel exec --all -- ibv_devi", ["ibv_devices", "ibv_devinfo"]),
    ("umbel exec --al", ["--all"]),
    ("umbel exec --so", ["--sockets"]),
    ("umbel exec --net ", ["host"]),
    ("umbel env h", ["h1", "h2", "h3"]),
    ("umbel rsh h", ["h1", "h2", "h3"]),
    ("umbel exec h2 -- ibv_devi", ["ibv_devices", "ibv_devinfo"]),
    ("umbel exec h2 -- ls --al", ["--all", "--almost-all"]),
    ("umbel run --hosts 2 -- ibv_devi", ["ibv_devices", "ibv_devinfo"]),
    ("umbel run --host", ["--host", "--hosts"]),
    ("umbel run --junit /etc/hostn", ["/etc/hostname"]),
    ("umbel run --faults /etc/hostn", ["/etc/hostname"]),
    ("umbel link ", ["down", "up"]),
    ("umbel link down s", ["sw1:1", "sw1:2", "sw1:3"]),
    ("umbel link down sw1:2", ["sw1:2"]),
    ("umbel link -n default up umbel_h2", ["umbel_h2_0:1"]),
    ("umbel fault ", ["add", "show", "clear"]),
    ("umbel link down h1", ["h1:1"]),
    ("umbel link up h", ["h1:1", "h2:1", "h3:1"]),
    ("umbel fault add lo", ["loss="]),
    ("umbel fault add dr", ["drop"]),
    ("umbel fault add qp=h1:* ", RULE),
    ("umbel explain wc RN", ["RNR_RETRY_EXC"]),
    ("umbel explain wc ", STATUSES),
    ("umbel fault add link=sw1:3 fl", ["flap="]),
    ("umbel fault add drop op", ["opcode="]),
    ("umbel capture h", ["h1", "h2", "h3"]),
    ("umbel capture --output /etc/hostn", ["/etc/hostname"]),
    ("umbel capture --group ", ["ff12:401b:ffff::ffff:ffff"]),
    ("umbel capture --class ", ["smp", "sa", "cm", "perf"]),
    ("umbel ladder /etc/hostn", ["/etc/hostname"]),
    ("umbel router ", ["default"]),
    ("umbel router --e", ["--end"]),
    ("umbel switch ", ["kill", "revive"]),
    ("umbel switch kill ", ["sw1"]),
    ("umbel sm ", ["start", "stop", "partitions", "event"]),
    ("umbel sm partitions /etc/hostn", ["/etc/hostname"]),
    ("umbel sm event ", ["lid-change", "client-reregister", "sm-change"]),
    ("umbel sm event lid-change umbel_h3", ["umbel_h3_0:1"]),
    ("umbel simulate ", ["all-to-all", "shift", "permutation", "groups", "file"]),
    ("umbel simulate --fat-tree 2 s", ["shift"]),
    ("umbel simulate file /etc/hostn", ["/etc/hostname"]),
    ("umbel simulate shift ", []),
    ("umbel simulate --svg /etc/hostn", ["/etc/hostname"]),
    ("umbel show --svg top", ["topology"]),
    ("umbel check --lfts /etc/hostn", ["/etc/hostname"]),
    ("umbel check --except deadlock", ["deadlock", "deadlock-groups"]),
    ("umbel up --sm ", ["embedded", "none"]),
    ("umbel up --topology /etc/hostn", ["/etc/hostname"]),
    ("umbel up --roce l", ["lo"]),
    ("umbel up --set ", [s + "=" for s in SETTINGS]),
    ("umbel set mt", ["mtu="]),
    ("umbel nonsense ", []),
]

NOBODY = [
    ("umbel exec ", ["--"]),
    ("umbel link down ", []),
    ("umbel switch kill ", []),
]


def options_cases():
    """All options of each command, which its help lists."""
    for command in COMMANDS:
        text = subprocess.run(["umbel", command, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
        options = []
        for line in text.splitlines():
            words = line.replace(",", "").split()
            if line.startswith(" ") and words and words[0].startswith("-"):
                options += [w.split("[")[0] for w in words[:2] if w.startswith("-")]
        assert "--help" in options, text
        yield (f"umbel {command} -", options)


class Bash:
    """An interactive bash on a terminal."""

    def __init__(self, share):
        rc = os.path.join(os.environ["TMPDIR"], "bashrc")
        with open(rc, "w") as f:
            # without a daemon that replies the limit is that of users; else a slow machine is no reason to fail
            f.write(RC.replace("{}", "1" if sys.argv[3:] else "60"))
        env = dict(os.environ, TERM="dumb", XDG_DATA_HOME=share, LC_ALL="C.UTF-8", INPUTRC="/dev/null",
                   BASH_COMPLETION_USER_DIR=share + "/bash-completion", COLUMNS="4000", HISTFILE="")
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.execvpe("bash", ["bash", "--noprofile", "--rcfile", rc, "-i"], env)
        # lines are not broken
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 4000, 0, 0))
        self.read_until("READY> ")

    def read_until(self, mark):
        """The output up to @mark."""
        text, end = "", time.monotonic() + 200
        while mark not in text:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                sys.exit(f"bash does not print '{mark}' but: {text}")
            text += os.read(self.fd, 65536).decode()
        return text

    def complete(self, line):
        """The words of the line after M-*."""
        os.write(self.fd, line.encode() + b"\x1b*" + b"\x01" + b"printf '<%s>\\n' " + b"\x05" + b" 'END'\r")
        text = self.read_until("\n<END>")
        if "READY> " not in text.split("\n<END>")[1]:
            self.read_until("READY> ")
        printed = text.replace("\r", "").split("\n")
        return [w[1:-1] for w in printed if w.startswith("<") and w.endswith(">") and w != "<END>"]


def main():
    bash = Bash(sys.argv[1])
    failed = False
    for line, want in NOBODY if sys.argv[3:] else CASES + list(options_cases()):
        begin = line.split(" ")[:-1]
        got = bash.complete(line)
        # what was typed stays where nothing fits
        want_all = begin + (sorted(set(want)) if want else [w for w in line.split(" ")[-1:] if w])
        if got[:len(begin)] + sorted(set(got[len(begin):])) != want_all:
            print(f"FAIL: '{line}' is completed to {got}, not to {want_all}")
            failed = True
    sys.exit(failed)


main()
