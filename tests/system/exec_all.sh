#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel exec --all`: the command on each host, what it prints, how it ends; and that nothing of it stays,
# however it ends.

. "${0%/*}/lib.sh"

# nobody_left NAME...: of the processes whose numbers the files PID.NAME.* have
nobody_left()
{
	local name file
	for name; do
		compgen -G "$TMPDIR/PID.$name.*" > /dev/null || complain "$name: nobody was there"
		for file in "$TMPDIR/PID.$name."*; do
			wait_until "$file is gone" gone "$(< "$file")"
		done
	done
}

# all_ready NAME: each host's command has said so
all_ready()
{
	[ "$(grep -c ': ready$' "$TMPDIR/$1.out")" -eq 3 ]
}

umbel up --hosts 3 > /dev/null

# ---- output
expect 0 $'h1: h1\nh2: h2\nh3: h3' umbel exec --all --jobs 1 -- sh -c 'echo $UMBEL_HOST'
for host in h1 h2 h3; do
	umbel exec --all -- ibv_devices > "$TMPDIR/devices"
	[ "$(grep -c "^$host: .*umbel_${host}_0" "$TMPDIR/devices")" -eq 1 ] || complain "$(< "$TMPDIR/devices")"
done
[ "$(grep -c umbel_ "$TMPDIR/devices")" -eq 3 ] || complain 'a host sees the devices of others'
[ "$(umbel exec --all -- sh -c 'echo out; echo err >&2' 2> "$TMPDIR/err" | sort)" = $'h1: out\nh2: out\nh3: out' ] ||
	complain 'standard output'
[ "$(sort "$TMPDIR/err")" = $'h1: err\nh2: err\nh3: err' ] || complain "standard error: $(< "$TMPDIR/err")"
expect 0 $'h1: a\nh1: \nh1: b\nh2: a*' umbel exec --all --jobs 1 -- printf 'a\n\nb'
expect 0 '' umbel exec --all -- cat # there is no input
expect 0 '' umbel exec --all -- true
# each line is whole, whoever else prints; what is too long is cut
umbel exec --all -- seq 100000 | awk '{ n[$1]++; if ($2 != n[$1]) exit 1 } END { exit NR != 300000 }' ||
	complain 'lines get lost, or mixed'
[ "$(umbel exec --all --jobs 1 -- head -c 200000 /dev/zero | tr '\0' x | awk '{ print $1, length($2) }' | sort | uniq -c |
	sed 's/^ *//')" = $'1 h1: 3392\n3 h1: 65536\n1 h2: 3392\n3 h2: 65536\n1 h3: 3392\n3 h3: 65536' ] ||
	complain 'a long line is not cut'

# ---- how it ends
expect 5 "umbel: host 'h2': the command's exit status is 5" umbel exec --all -- sh -c '[ $UMBEL_HOST != h2 ] || exit 5'
# the first host counts, not the first command that ends
expect 7 $'umbel: host \'h3\': the command\'s exit status is 9\numbel: host \'h2\': the command\'s exit status is 7' \
	umbel exec --all -- sh -c 'case $UMBEL_HOST in
h2) until [ -s '"$TMPDIR"'/h3 ] && [ ! -e "/proc/$(cat '"$TMPDIR"'/h3)" ]; do sleep 0.01; done; exit 7 ;;
h3) echo $$ > '"$TMPDIR"'/h3; exit 9 ;;
esac'
expect 137 "umbel: host 'h3': signal 9 (Killed) has ended the command" \
	umbel exec --all -- sh -c '[ $UMBEL_HOST != h3 ] || kill -9 $$'
expect 127 "*h1: umbel: cannot run 'no-such-program': *" umbel exec --all -- no-such-program
expect 126 "*h1: umbel: cannot run '/etc/passwd': *" umbel exec --all -- /etc/passwd
expect 2 "umbel: exec: either --all or a host, not 'h1' too; *" umbel exec --all h1 -- true
expect 2 "umbel: exec: one host, then '--' *" umbel exec --all h1 h2 -- true
expect 2 "umbel: exec: '--' and a command are missing; *" umbel exec --all
expect 2 "umbel: exec: '--' and a command are missing; *" umbel exec --all --
expect 2 'umbel: exec: --jobs goes with --all; *' umbel exec --jobs 3 h1 -- true
for n in 0 -1 257 x; do
	expect 2 "umbel: exec: '$n' is no number from 1 to 256; *" umbel exec --all --jobs "$n" -- true
done
expect 1 "umbel: no host 'h9' *" umbel exec h9 -- true

# ---- nothing stays behind
# what a command has left in its group, and in a session of its own
umbel exec --all -- sh -c 'sleep 1000 & echo $! > '"$TMPDIR"'/PID.group.$UMBEL_HOST' || complain 'it fails'
umbel exec --all -- sh -c 'setsid sh -c "echo \$\$ > '"$TMPDIR"'/PID.session.$UMBEL_HOST; sleep 1000" &
until [ -s '"$TMPDIR"'/PID.session.$UMBEL_HOST ]; do sleep 0.01; done' || complain 'it fails'
nobody_left group session

# shellcheck disable=SC2016
says_ready='echo $$ > '"$TMPDIR"'/PID.$0.$UMBEL_HOST; echo ready; while :; do sleep 0.05; done'
# shellcheck disable=SC2016
group='sleep 1000 & echo $! > '"$TMPDIR"'/PID.$0.$UMBEL_HOST.child; '

# TERM reaches all of them, and no other host's turn comes
launch term umbel exec --all -- sh -c "trap 'echo bye; exit 3' TERM; $group $says_ready" term
wait_until 'all are ready' all_ready term
kill "${pid[term]}"
wait_ended term 143
[ "$(grep -c ': bye$' "$TMPDIR/term.out")" -eq 3 ] || complain "not all got the signal: $(< "$TMPDIR/term.out")"
launch few umbel exec --all --jobs 1 -- sh -c "$says_ready" few
wait_said few 'h1: ready'
kill -HUP "${pid[few]}"
wait_ended few 129
! grep -q 'h[23]: ' "$TMPDIR/few.out" || complain 'it goes on after a signal'
nobody_left term few

# who does not listen is killed by the second one
launch deaf umbel exec --all -- sh -c "trap '' TERM; $group $says_ready" deaf
wait_until 'all are ready' all_ready deaf
again()
{
	kill "${pid[deaf]}" 2> /dev/null # two that come together are one
	gone "${pid[deaf]}"
}
wait_until 'it is killed' again
wait_ended deaf 143
nobody_left deaf

# Ctrl-C on a terminal
cat > "$TMPDIR/typed.py" <<'EOF'
import os, pty, sys
pid, fd = pty.fork()
if not pid:
    os.execvp('umbel', ['umbel', 'exec', '--all', '--'] + sys.argv[1:])
text = b''
try:
    while chunk := os.read(fd, 4096):
        typed = text.count(b': ready') < 3
        text += chunk
        if typed and text.count(b': ready') == 3:
            os.write(fd, b'\x03')
except OSError:
    pass
print(text.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
EOF
expect 0 '*ready*: bye*: bye*: bye* 130' timeout 60 python3 "$TMPDIR/typed.py" sh -c "trap 'echo bye; exit 3' INT; $says_ready" typed
nobody_left typed

# a command that is stopped is named; it goes on, or gets the signal
launch stopped umbel exec --all -- sh -c "$says_ready" stopped
wait_until 'all are ready' all_ready stopped
kill -STOP "$(< "$TMPDIR/PID.stopped.h2")"
wait_said stopped "umbel: host 'h2': signal 19 (Stopped (signal)) has stopped the command, process [0-9]"
kill "${pid[stopped]}"
wait_ended stopped 143
nobody_left stopped

# umbel itself is killed
launch killed umbel exec --all -- sh -c "$says_ready" killed
wait_until 'all are ready' all_ready killed
kill_hard killed
nobody_left killed

# nobody reads it any more, or nobody does just now
umbel exec --all -- sh -c 'echo $$ > '"$TMPDIR"'/PID.head.$UMBEL_HOST; exec yes' | head -1 > /dev/null
status=${PIPESTATUS[0]}
[ "$status" -eq 141 ] || complain "status $status, not 141: its reader has gone"
umbel exec --all -- sh -c 'echo $$ > '"$TMPDIR"'/PID.deafened.$UMBEL_HOST; trap "" PIPE; while echo y; do :; done' \
	2> "$TMPDIR/deafened.err" | head -1 > /dev/null
status=${PIPESTATUS[0]}
[ "$status" -eq 141 ] || complain "status $status, not 141: its reader has gone, and commands ignore the signal"
mkfifo "$TMPDIR/full"
exec 5<> "$TMPDIR/full"
umbel exec --all -- sh -c 'echo $$ > '"$TMPDIR"'/PID.full.$UMBEL_HOST; exec yes' > "$TMPDIR/full" &
writer=$!
wait_until 'they run' test -s "$TMPDIR/PID.full.h3"
kill $writer
wait $writer
status=$?
[ $status -eq 143 ] || complain "status $status, not 143: nobody reads"
exec 5>&-
nobody_left head deafened full
# commands that have only been started when the first one's reader goes
for ((i = 0; i < 20; i++)); do
	timeout 60 umbel exec --all -- yes | head -1 > /dev/null
	status=${PIPESTATUS[0]}
	[ "$status" -eq 141 ] || complain "status $status, not 141: its reader has gone early"
done
umbel down > /dev/null

# ---- hosts with a network and a name of their own
umbel up --roce-hosts 2 > /dev/null
expect 0 $'r1: r1\nr2: r2' umbel exec --all --jobs 1 -- hostname
expect 0 "r1: $(hostname)"$'\n'"r2: $(hostname)" umbel exec --all --net host --jobs 1 -- hostname
umbel down > /dev/null
expect 1 "umbel: no fabric *" umbel exec --all -- true

# ---- a thousand hosts, of which eight at once
umbel up --hosts 1000 > /dev/null
mkdir "$TMPDIR/now"
umbel exec --all --jobs 8 -- sh -c 'd='"$TMPDIR"'/now
: > $d/$UMBEL_HOST; set -- $d/*; echo $#; rm $d/$UMBEL_HOST' > "$TMPDIR/thousand" || complain 'it fails'
[ "$(sort -u "$TMPDIR/thousand" | cut -d: -f1 | uniq | wc -l)" -eq 1000 ] || complain 'not on all hosts'
most=$(cut -d' ' -f2 "$TMPDIR/thousand" | sort -n | tail -1)
[ "$most" -le 8 ] && [ "$most" -gt 1 ] || complain "$most at once"
expect 1 "*host 'h*exit status is 1*the command has failed on 1000 of 1000 hosts" umbel exec --all -- false
umbel down > /dev/null
