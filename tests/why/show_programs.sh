#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# show_programs.sh PROGRAM: `umbel show processes`, `connections` and `mrs` have what Debian's programs
# and PROGRAM (why.c) have: connections by rdma_cm in each state and by hand, regions, thousands of
# queue pairs; and nothing any more when they are gone. `--watch` shows it again.

. "${0%/*}/why.bash"

# has VIEW PATTERN...: whether each pattern fits a row of the view, its blanks as one.
has()
{
	local rows view=$1 pattern
	shift
	rows=$(umbel show "$view" | sed 's/  */ /g; s/^ //')
	for pattern; do
		grep -qxE "$pattern" <<< "$rows" || return
	done
}

# shows VIEW PATTERN...: it comes to have them
shows()
{
	wait_until "$1 has ${*:2}" has "$@" || umbel show "$1" >&2
}

# query VIEW EXPRESSION: of Python, about the rows of its JSON, v
query()
{
	umbel show "$1" --json | python3 -c 'import json, sys
v = json.load(sys.stdin)
assert '"$2"', v' || complain "$1: not so: $2"
}

nothing()
{
	[ "$(umbel show processes)" = 'no processes' ] && [ "$(umbel show connections)" = 'no connections' ]
}

umbel up --hosts 3 > /dev/null
expect 0 'no processes' umbel show processes
expect 0 'no connections' umbel show connections
expect 0 'no memory regions of processes with connected queue pairs' umbel show mrs
for view in processes connections mrs; do
	expect 0 '\[]' umbel show "$view" --json
done

# ---- by hand
hold rc
query processes "len(v) == 1 and v[0]['program'] == 'system.why' and v[0]['uid'] == $(id -u)"
query processes "v[0]['hosts'] == ['h3', 'h1'] or v[0]['hosts'] == ['h1', 'h3']"
query processes "[v[0][k] for k in ('qps', 'cqs', 'srqs', 'channels', 'mrs', 'cm_ids', 'joins')] == [2, 2, 0, 0, 2, 0, 0]"
shows connections "h1 1 [0-9]+ hand RTS $from RC RTS h3 $to - -" \
	"h3 1 [0-9]+ hand RTS $to RC RTS h1 $from - -"
query connections "all(c['send_room'] >= 8 and c['receive_room'] >= 8 for c in v)"
query mrs "len(v) == 2 and all(m['length'] == 8192 and m['access'] == ['local_write'] for m in v)"
kill_hard rc
shows processes 'no processes'
shows connections 'no connections'

# datagrams are no connections, and regions of such processes are their own business
hold ud
query processes "v[0]['qps'] == 2 and 'mrs' not in v[0]"
expect 0 'no connections' umbel show connections
expect 0 'no memory regions*' umbel show mrs
query qps "[(q['sent_packets'], q['sent_bytes']) for q in v if q['host'] == 'h1'] == [(1, 64)]"
kill_hard ud

# ---- by rdma_cm
start server h1 rping -s -P -a 10.0.0.1
shows connections 'h1 1 [0-9]+ rdma_cm LISTEN - - - - 10\.0\.0\.1:7174 -'
start client h2 rping -c -a 10.0.0.1 -C 100000000
shows connections \
	'h2 1 [0-9]+ rdma_cm ESTABLISHED 0x[0-9a-f]+ RC RTS h1 0x[0-9a-f]+ 10\.0\.0\.2:[0-9]+ 10\.0\.0\.1:7174' \
	'h1 1 [0-9]+ rdma_cm ESTABLISHED 0x[0-9a-f]+ RC RTS h2 0x[0-9a-f]+ 10\.0\.0\.1:7174 10\.0\.0\.2:[0-9]+' \
	'h1 1 [0-9]+ rdma_cm LISTEN .*'
query connections "len(v) == 3 and len({c['qpn'] for c in v if 'qpn' in c}) == 2"
shows processes '[0-9]+ rping [0-9]+ verbs h1 1 1 0 1 3 2 0' '[0-9]+ rping [0-9]+ verbs h2 1 1 0 1 4 1 0'
query mrs "sum('remote_read' in m['access'] for m in v) == 3"
kill_hard client
client_gone()
{
	! umbel show connections | grep -q ^h2
}
wait_until 'the client is gone' client_gone

# a server that does not answer
kill -STOP "$(umbel show processes --json | python3 -c 'import json, sys
print(json.load(sys.stdin)[0]["pid"])')"
start client h2 rping -c -a 10.0.0.1 -C 1
shows connections 'h2 1 [0-9]+ rdma_cm (REQ_SENT|MRA_REQ_RCVD) 0x[0-9a-f]+ RC INIT - 10.*:7174' \
	'h1 1 [0-9]+ rdma_cm MRA_REQ_SENT - - - .*'
kill_hard client
kill_hard server
wait_until 'nothing is left' nothing

# ---- datagrams and groups by rdma_cm, MADs
start mckey h2 mckey -m 239.1.1.1
shows processes '[0-9]+ mckey [0-9]+ verbs h2 1 1 0 [01] - 1 1'
start ibping h3 ibping -S
shows processes '[0-9]+ ibping [0-9]+ umad h3 0 0 0 0 - 0 0'
expect 0 'no connections' umbel show connections
kill_hard mckey
kill_hard ibping

# ---- a name that is none for a terminal, or JSON
name=$'a\e[1m"\\\xff'
cp "$program" "$TMPDIR/$name"
start odd all "$TMPDIR/$name" ud
wait_said odd ready
query processes 'v[0]["program"] == "a?[1m\"\\?"'
expect 0 '* a\?\[1m"\\\? *' umbel show processes
kill_hard odd

# ---- thousands
start many all "$program" many 3000
wait_said many ready
query processes "v[0]['qps'] == 3000"
kill_hard many
wait_until 'nothing is left' nothing

# ---- again and again
expect 2 "umbel: show: '0' is no number *" umbel show --watch 0 qps
expect 2 'umbel: show: a picture is not *--watch; *' umbel show topology --svg --watch 1
launch watch umbel show --watch 1 processes
launch watch_json umbel show --watch 1 --json processes
wait_said watch 'no processes' 2
wait_said watch_json '\[]' 2
umbel down > /dev/null
wait_ended watch 1
wait_ended watch_json 1
grep -q '^umbel: ' "$TMPDIR/watch.out" || complain 'it ends without a word'
