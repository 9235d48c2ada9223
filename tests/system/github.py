#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Runs steps as a runner of GitHub's would: github.py [NAME=VALUE]... COMMANDS...
# First the composite action of this repository, with these inputs, then each of COMMANDS as a step of its own: a
# new shell, with the variables and directories that steps before it wrote to GITHUB_ENV and GITHUB_PATH. The output of the
# steps is printed, the action's on standard error; the first that fails ends it with its status.

import os
import re
import subprocess
import sys
import tempfile

import yaml

ACTION = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
INPUT = re.compile(r"([a-z]+)=(.*)", re.DOTALL)


def expand(text, inputs):
    """Replaces the expressions ${{ inputs.NAME }}; there are no others."""
    def value(match):
        return inputs[match.group(1)]
    expanded = re.sub(r"\$\{\{ *inputs\.([a-z]+) *\}\}", value, str(text))
    assert "${{" not in expanded, expanded
    return expanded


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def take_over(env, files):
    """What a step has written counts from the next one on."""
    for line in read_lines(files["GITHUB_ENV"]):
        name, equals, value = line.partition("=")
        if not equals or name in ("PATH", "NODE_OPTIONS") or name.startswith(("GITHUB_", "RUNNER_")):
            sys.exit(f"the runner refuses in GITHUB_ENV: {line}")
        env[name] = value
    for line in read_lines(files["GITHUB_PATH"]):
        env["PATH"] = line + ":" + env["PATH"]


def run_step(script, env, more=None, stdout=None):
    with tempfile.TemporaryDirectory() as directory:
        files = {name: os.path.join(directory, name) for name in ("GITHUB_ENV", "GITHUB_PATH", "step.sh")}
        for path in files.values():
            open(path, "w", encoding="utf-8").close()
        with open(files["step.sh"], "w", encoding="utf-8") as file:
            file.write(script)
        status = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", files["step.sh"]], check=False, stdout=stdout,
            env={**env, **files, **(more or {})}).returncode
        if status:
            sys.exit(status)
        take_over(env, files)


def main():
    with open(os.path.join(ACTION, "action.yml"), encoding="utf-8") as file:
        action = yaml.safe_load(file)
    inputs = {name: row.get("default", "") for name, row in action["inputs"].items()}
    words = sys.argv[1:]
    while words and INPUT.fullmatch(words[0]):
        name, value = INPUT.fullmatch(words.pop(0)).groups()
        assert name in inputs, name
        inputs[name] = value
    env = dict(os.environ, GITHUB_ACTION_PATH=ACTION)
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        assert step["shell"] == "bash"
        run_step(expand(step["run"], inputs), env,
                 {name: expand(value, inputs) for name, value in step["env"].items()}, stdout=sys.stderr)
    for script in words:
        run_step(script, env)
        sys.stdout.flush()


main()
