#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the fabric costs a program, in a cgroup of 512 MiB: programs that people have run in little address space; a core
# dump, mlockall() and valgrind see some megabytes of it; 64 programs on 4 hosts stay small.

. "${0%/*}/lib.sh"
. "${0%/*}/../system/perftest.bash"
trap end EXIT

limit_memory $((512 * MB)) || echo "no cgroup can be made here: what processes and the shared memory have is counted instead"
more=$((16 * MB)) # than the same program has without the fabric

# within WHAT BYTES ITS-BYTES-WITHOUT
within()
{
	[[ ${2:-0} != 0 && $3 ]] || complain "$1: this was not measured"
	echo "$1: $((${2:-0} / 1024)) KiB, without the fabric $((${3:-0} / 1024))"
	((${2:-0} - ${3:-0} <= more)) || complain "$1: $(((${2:-0} - ${3:-0}) / MB)) MiB more than without the fabric"
}

# ---- little address space, for the daemon, too
expect 0 '*is up*' little umbel up --hosts 4
cp "${0%/*}"/../../examples/{first_multicast.c,setup.[ch],Makefile} "$TMPDIR"
make -s -C "$TMPDIR" first_multicast || complain "the example is not built"
address=10.0.0.

serve_little()
{
	new_port
	at[$1]=$port
	launch "server-$1" little umbel exec h1 -- stdbuf -oL "${@:2}" -p "$port"
}

serve_little send ib_send_bw -F
serve_little write ib_write_bw -F
launch receiver little umbel exec h2 -- stdbuf -oL mckey -m 239.1.1.1 -b ${address}2 -C 10
launch reader little umbel exec h3 -- stdbuf -oL "$TMPDIR/first_multicast" ${address}3 239.1.1.2
for i in send write; do
	wait_listening "server-$i" "${at[$i]}"
	launch "client-$i" little umbel exec h4 -- stdbuf -oL ib_${i}_bw -F -p "${at[$i]}" localhost
done
wait_said receiver 'mckey: joined dgid: '
launch sender little umbel exec h4 -- stdbuf -oL mckey -s -m 239.1.1.1 -b ${address}4 -C 10
expect 0 '' umbel wait --group ff12:4001:ffff::f01:102 --attached 1
expect 0 '*' little umbel exec h4 -- "$TMPDIR/first_multicast" ${address}4 239.1.1.2 3
wait_said reader '.*message 3$'
kill_hard reader
for i in client-send server-send client-write server-write; do
	wait_ended $i 0
done
expect 0 '' little umbel exec h1 -- "$user" open

# ---- a core dump, of the kernel's and of gdb's
# cored COMMAND...: the bytes of the kernel's
cored()
{
	mkdir "$TMPDIR/core"
	(cd "$TMPDIR/core" && ulimit -c unlimited && "$@" > /dev/null 2>&1)
	stat -c %s "$TMPDIR"/core/core* 2> /dev/null
	rm -r "$TMPDIR/core"
}

# gcored NAME: those of gdb's
gcored()
{
	wait_said "$1" ready || return
	gcore -o "$TMPDIR/gcore" "${pid[$1]}" > "$TMPDIR/gcore.out" 2>&1 || complain "gcore: $(cat "$TMPDIR/gcore.out")"
	stat -c %s "$TMPDIR"/gcore.[0-9]*
	rm -f "$TMPDIR"/gcore.[0-9]*
}

case $(cat /proc/sys/kernel/core_pattern) in
[/\|]*) echo "the kernel's cores go elsewhere here: gdb's alone are looked at" ;;
*) within "a core of the kernel's" "$(cored umbel exec h1 -- "$user" open abort)" "$(cored "$user" abort)" ;;
esac
mkfifo "$TMPDIR/ends"
exec 4<> "$TMPDIR/ends"
# shellcheck disable=SC2016 # that shell's
held='exec "$@" < "$0"'
launch held umbel exec h1 -- bash -c "$held" "$TMPDIR/ends" "$user" open wait
launch bare bash -c "$held" "$TMPDIR/ends" "$user" wait
within "a core of gdb's" "$(gcored held)" "$(gcored bare)"
kill_hard held
kill_hard bare

# ---- mlockall()
# locked COMMAND...: bytes at its end
locked()
{
	"$@" 2>> "$TMPDIR/refused" | awk '/^locked / { kb = $2 } END { print kb * 1024 }'
}

if "$user" lock 1 > /dev/null 2>&1; then
	for flags in 1 2 3; do # MCL_CURRENT, MCL_FUTURE
		within "mlockall($flags)" "$(locked umbel exec h1 -- "$user" lock $flags open lock $flags)" \
			"$(locked "$user" lock $flags lock $flags)"
	done
else
	echo "mlockall() is refused here (ulimit -l): it is not looked at"
fi

# ---- valgrind's leak check reads all that a process has mapped
# checked COMMAND...: bytes
checked()
{
	"$@" 2>&1 | sed -n 's/^.*Checked \([0-9,]*\) bytes$/\1/p' | tr -d ,
}

command -v valgrind > /dev/null || complain "valgrind is missing (debian-packages)"
within "what valgrind searches" "$(checked umbel exec h1 -- valgrind -v "$user" open)" \
	"$(checked valgrind -v "$user")"

wait_ended sender 0
wait_ended receiver 0

# ---- a crowd
# shellcheck disable=SC2016 # that shell's
launch crowd umbel exec --all -- bash -c 'for ((i = 0; i < 16; i++)); do "$1" open wait < "$2" & done; wait' - "$user" "$TMPDIR/ends"
wait_until '64 programs are there' says crowd '.*ready$' 64
now=$(charged)
echo "64 programs on 4 hosts: $((now / 1024)) KiB"
((now > 0 && now < 256 * MB)) || complain "64 programs on 4 hosts have $((now / MB)) MiB"
exec 4>&-
