# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where measurements happen: fabrics of our own, the programs that run on them, their samples.

The fabrics live in a runtime directory of the benchmark's, so no fabric of the user's is seen
or touched, and all end with it. A program prints its samples as JSON, one a line.
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager


PATIENCE = (0.1, 0.5, 2)  # seconds that a server has until its client comes
SECONDS = 20  # that a client may take
GRACE = 10  # that a program has which is to end


class Failed(Exception):
    """A program failed; the text is what it said."""


class Fabric:
    """A fabric that is up, and whoever keeps it full (bench/crowd.c)."""

    def __init__(self, lab, name):
        self.lab = lab
        self.name = name
        self.crowd = None
        self.ready = None

    def exec(self, *command, host=None, options=()):
        where = [host] if host else []
        return [self.lab.umbel, "exec", "--name", self.name, *options, *where, "--", *command]

    def run(self, program, *arguments):
        """Runs a program of bench/ to its end. Its samples."""
        return self.lab.samples(self.exec(self.lab.program(program), *map(str, arguments)))

    def shell(self, host, script):
        """Has a shell on that host run it."""
        done = subprocess.run(
            self.exec("sh", "-ec", f"PATH=$PATH:/usr/sbin:/sbin; {script}", host=host),
            env=self.lab.env, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            raise Failed(f"{script}: {done.stderr.strip()}")

    def start(self, program, *arguments):
        """Starts a program of bench/ that obeys its standard input."""
        return subprocess.Popen(self.exec(self.lab.program(program), *map(str, arguments)),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                env=self.lab.env, text=True)

    def fill(self, *what, program="crowd"):
        """Starts a crowd and waits until it is there. What it said."""
        self.dismiss()
        self.crowd = self.start(program, *what)
        line = self.crowd.stdout.readline()
        if not line:
            raise Failed(f"no crowd: {program} {' '.join(map(str, what))}")
        self.ready = json.loads(line)
        return self.ready

    def ask(self, command=""):
        """Has the crowd do what it does when it is asked. What it said then."""
        self.crowd.stdin.write(command + "\n")
        self.crowd.stdin.flush()
        return json.loads(self.crowd.stdout.readline())

    def kill(self):
        """Kills the crowd."""
        self.crowd.kill()
        self.crowd.wait()
        self.crowd = None

    def dismiss(self):
        """Ends the crowd. What it said last, or None."""
        if not self.crowd:
            return None
        said, _ = self.crowd.communicate()
        self.crowd = None
        return json.loads(said.splitlines()[-1]) if said.strip() else None

    def show(self, what):
        return self.lab.umbel_json("show", "--name", self.name, what)

    def status(self):
        return self.lab.umbel_json("status", "--name", self.name)

    def down(self):
        self.dismiss()
        self.lab.call("down", "--name", self.name)


def base(lab):
    """The fabric that most is measured on."""
    return lab.fabric("base", "--hosts", "4")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run_to_end(command, env, seconds, stderr):
    """Runs it; what it said, with its status. Who takes longer is asked to end before he is killed, as
    mpirun's ranks would outlive it."""
    with subprocess.Popen(command, env=env, text=True, errors="replace", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=stderr) as process:
        try:
            said = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                process.communicate(timeout=GRACE)
            except subprocess.TimeoutExpired:
                pass
            raise
        finally:
            process.kill()
    return subprocess.CompletedProcess(command, process.returncode, *said)


def client_says(command, env):
    """What it prints until it ends, or until it has had more time than it needs."""
    try:
        return run_to_end(command, env, SECONDS, subprocess.STDOUT).stdout
    except subprocess.TimeoutExpired:
        return f"no end in {SECONDS} s"
    except OSError as e:
        raise Failed(f"{command[0]}: {e.strerror}") from None


class Lab:
    def __init__(self, umbel):
        self.umbel = umbel
        self.programs = os.path.join(os.path.dirname(os.path.dirname(umbel)), "bench", "bin")
        self.directory = tempfile.mkdtemp(prefix="umbel-bench.", dir="/tmp")
        os.mkdir(os.path.join(self.directory, "run"), 0o700)
        self.env = {k: v for k, v in os.environ.items()
                    if k not in ("UMBEL_FABRIC", "UMBEL_HOST", "XDG_RUNTIME_DIR")}
        self.env["UMBEL_RUNTIME_DIR"] = os.path.join(self.directory, "run")
        self.fabrics = {}

    def program(self, name):
        return os.path.join(self.programs, name)

    def call(self, *arguments):
        done = subprocess.run([self.umbel, *arguments], env=self.env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            raise Failed(f"umbel {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def umbel_json(self, *arguments):
        return json.loads(self.call(*arguments, "--json"))

    def samples(self, command, env=None, seconds=30):
        try:
            done = run_to_end(command, env or self.env, seconds, subprocess.PIPE)
        except subprocess.TimeoutExpired:
            raise Failed(f"{' '.join(command)} does not end") from None
        except OSError as e:
            raise Failed(f"{command[0]}: {e.strerror}") from None
        if done.returncode and "cannot" not in done.stdout:
            raise Failed(done.stderr.strip() or f"{' '.join(command)} failed")
        now = time.time()
        return [{**json.loads(line), "time": now} for line in done.stdout.splitlines()]

    @contextmanager
    def background(self, command, env):
        """A program that runs as long as this does, and says nothing."""
        try:
            process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except OSError as e:
            raise Failed(f"{command[0]}: {e.strerror}") from None
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def exchange(self, server, client, read, env=None):
        """Runs two programs, the server until the client has ended. What read() finds in what the
        client says. Servers do not say when they listen: where a client comes too early, which
        read() tells by None, both are started anew, with more time between."""
        env = {**self.env, **(env or {})}
        for patience in PATIENCE:
            with self.background(server, env):
                time.sleep(patience)
                said = client_says(client, env)
            found = read(said)
            if found is not None:
                return found
        raise Failed(f"{' '.join(client)}: {said.strip()[-300:]}")

    def wire(self, mtu, cut, program, *arguments):
        """Runs a program of bench/ between two RoCE fabrics on a wire of that MTU, which are
        there as long as it runs. cut: the wire takes single datagrams only. Its samples."""
        script = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))),
                              "wire.sh")
        return self.samples([script, self.umbel, str(mtu), "1" if cut else "65535",
                             self.program(program), *map(str, arguments)])

    def fabric(self, name, *options):
        """The fabric of that name, started now if need be."""
        if name not in self.fabrics:
            self.call("up", "--name", name, *options)
            self.fabrics[name] = Fabric(self, name)
        return self.fabrics[name]

    def close(self):
        for fabric in self.fabrics.values():
            if fabric.crowd:
                fabric.crowd.kill()
                fabric.crowd.wait()
        try:
            self.call("down", "--all", "--yes", "--force")
        except Failed as e:
            print(e)
        shutil.rmtree(self.directory, ignore_errors=True)
