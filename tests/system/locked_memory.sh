#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs may lock as much memory as may be: without a limit if root starts them, else up to the hard limit.
# (Umbel locks none; some look at the limit first.)

. "${0%/*}/lib.sh"

umbel up --hosts 1 > /dev/null

# limits COMMAND...: the soft and the hard limit that it has, KiB, of 64 and 4096
limits()
{
	# one who may not raise the hard limit, root or not
	(ulimit -S -l 64 && ulimit -H -l 4096 && exec "$@" bash -c 'ulimit -S -l; ulimit -H -l')
}

unprivileged=(setpriv --inh-caps -sys_resource --bounding-set -sys_resource)
expect 0 $'4096\n4096' limits "${unprivileged[@]}" umbel exec h1 --
expect 0 $'h1: 4096\nh1: 4096' limits "${unprivileged[@]}" umbel exec --all --
expect 0 $'4096\n4096' limits "${unprivileged[@]}" umbel run --hosts 1 --
# shellcheck disable=SC2016 # that shell's
may=$(limits bash -c 'ulimit -H -l unlimited 2> /dev/null; ulimit -H -l' | head -n 1)
expect 0 "$may"$'\n'"$may" limits umbel exec h1 --
# what starts it keeps its own
expect 0 $'64\n4096' limits env
