#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel env`: the programs of a shell run on a host as under `umbel exec`, and the lines of --plain do
# the same for what reads them.

. "${0%/*}/lib.sh"

# devices: as verbs and sysfs show them; ours is on the PATH. A shell has no builtin for these.
devices='ibv_devices | awk "NR > 2 { print \$1 }"; ls /sys/class/infiniband'

# in_clean COMMAND: in an environment that knows the directory of fabrics and a PATH
in_clean()
{
	env -i PATH="$PATH" UMBEL_RUNTIME_DIR="$UMBEL_RUNTIME_DIR" bash -c "$1"
}

expect 1 "*no fabric 'default' is up*" umbel env
umbel up --hosts 2 > /dev/null
umbel up --name "second" --hosts 1 > /dev/null

expect 0 $'umbel_h1_0\numbel_h1_0' in_clean "eval \"\$(umbel env h1)\"; $devices"
expect 0 $'umbel_h1_0\numbel_h2_0\numbel_h1_0\numbel_h2_0' in_clean "eval \"\$(umbel env)\"; $devices"
# another host after it, and all
expect 0 $'umbel_h2_0\numbel_h2_0' in_clean "eval \"\$(umbel env h1)\"; eval \"\$(umbel env h2)\"; $devices"
expect 0 $'umbel_h1_0\numbel_h2_0\n*' in_clean "eval \"\$(umbel env h1)\"; eval \"\$(umbel env)\"; $devices"
expect 0 $'umbel_h1_0\numbel_h1_0' in_clean "eval \"\$(umbel env -n second h1)\"; umbel down -n default > /dev/null; $devices"
umbel up --hosts 2 > /dev/null

# the same variables as under umbel exec, for a shell and line by line
of_exec=$(in_clean 'umbel exec h1 -- env' | grep -Ev '^(PATH|PWD|SHLVL|_)=' | sort)
of_env=$(in_clean 'eval "$(umbel env h1)"; exec env' | grep -Ev '^(PATH|PWD|SHLVL|_)=' | sort)
[ "$of_env" = "$of_exec" ] || complain "$of_env is not $of_exec"
plain=$(in_clean 'umbel env --plain h1' | sort)
[ "$plain" = "$of_exec" ] || complain "$plain is not $of_exec"

# values are what they are
expect 0 "a'b \$x \"\\" env LD_LIBRARY_PATH="a'b \$x \"\\" bash -c \
	'eval "$(umbel env h1)"; echo "${LD_LIBRARY_PATH##*:}"'
expect 1 '*LD_LIBRARY_PATH has a line break*' env LD_LIBRARY_PATH=$'a\nb' umbel env --plain h1

expect 1 "*no host 'h3'*" umbel env h3
expect 2 '*one host*' umbel env h1 h2
