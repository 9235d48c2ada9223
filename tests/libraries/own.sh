#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# own.sh PROGRAM LIBDIR: programs that find rdma-core's libraries, in LIBDIR, before ours: by a DT_RPATH, as that program
# does, or by an LD_LIBRARY_PATH of their own. They see their host's devices all the same, and neither they nor what they start
# can tell. Where that cannot be, a line says why there are none.

. "${0%/*}/../system/lib.sh"

program=$1 libdir=$2
umbel up --hosts 2 > /dev/null
readelf -d "$program" | grep -q "(RPATH) .*\\[$libdir\\]" || complain 'the program has no RPATH'

# its name, arguments, process, environment and descriptors are those that it was started with
expect 0 'a name with 0 arguments: 1 devices' umbel exec h2 -- bash -c "exec -a 'a name' '$program'"
# shellcheck disable=SC2016 # the shells in there replace these
expect 0 $'same process\nsame environment\n*with 1 arguments: 1 devices\n0' umbel exec h1 -- bash -c '
	env -u _ -u SHLVL | sort > "$TMPDIR/before"
	"$0" "sed \"s/ .*//\" /proc/\$PPID/stat > $TMPDIR/pid; env -u _ -u SHLVL | sort > $TMPDIR/after
		ls /proc/self/fd | wc -l > $TMPDIR/fds; grep -c libibverbs /proc/self/maps" > "$TMPDIR/said" &
	process=$!
	wait $process
	[ $process != "$(< "$TMPDIR/pid")" ] || echo same process
	diff "$TMPDIR/before" "$TMPDIR/after" && echo same environment
	cat "$TMPDIR/said"' "$program"
# whichever library it is, of a program that is not ours
expect 0 '*umbel_h2_0*' umbel exec h2 -- env LD_LIBRARY_PATH="$libdir" ibv_devinfo
expect 0 "*CA 'umbel_h2_0'*" umbel exec h2 -- env LD_LIBRARY_PATH="$libdir" ibstat
expect 0 '*umbel_h1_0*' umbel exec h1 -- sh -c "unset LD_LIBRARY_PATH; exec ibv_devices"
start server h1 env LD_LIBRARY_PATH="$libdir" rping -s -a 10.0.0.1 -C 2 -V
wait_until 'rping listens' eval 'umbel status --json | grep -q "\"listeners\": 1"'
expect 0 '*' umbel exec h2 -- env LD_LIBRARY_PATH="$libdir" rping -c -a 10.0.0.1 -C 2 -V
wait_ended server 0

# what it cannot do it says, once: a library that is loaded later; a dynamic linker that was started by hand
told="instead of Umbel's, by an RPATH or LD_LIBRARY_PATH of its own, and sees no devices: LD_PRELOAD=\"\$LD_PRELOAD:$UMBEL_LIBDIR/libibverbs.so.1\""
twice="import ctypes
for i in range(2): ctypes.CDLL('$libdir/libibverbs.so.1').ibv_get_device_list(None)"
expect 0 "umbel: 'python3*' has loaded '$libdir/libibverbs.so.1' $told in its environment loads Umbel's first" \
	umbel exec h1 -- python3 -c "$twice"
expect 0 '' umbel exec h1 -- env LD_PRELOAD="$UMBEL_LIBDIR/libumbel-sysfs.so:$UMBEL_LIBDIR/libibverbs.so.1" python3 -c \
	"import ctypes; ctypes.CDLL('libibverbs.so.1').ibv_get_device_list(None)"
linker=$(readelf -l "$program" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
expect 0 "umbel: '*' has loaded '$libdir/libibverbs.so.1' $told*0 devices" umbel exec h1 -- "$linker" "$program"
umbel down > /dev/null
