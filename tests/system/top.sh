#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel top` in a real terminal, tmux's: what is on its screen while Debian's programs send, at 80 by
# 24 and other sizes; keys; and that the terminal is as it was however it ends: by a key, a signal, the
# fabric's end.

. "${0%/*}/perftest.bash"

terminal()
{
	env -u TMUX tmux -S "$TMPDIR/terminal" -f /dev/null "$@"
}

finish_terminal()
{
	local status=$?

	[ $failed -eq 0 ] || { echo '---- the screen:' && screen; } >&2
	terminal kill-server 2> /dev/null
	(exit $status)
	finish
}
trap finish_terminal EXIT

screen()
{
	terminal capture-pane -p
}

keys()
{
	terminal send-keys "$@"
}

# sees PATTERN...: whether for each one there is a line on the screen that begins so, with blanks as one.
sees()
{
	local now pattern

	now=$(screen | sed 's/  */ /g; s/^ //; s/ $//')
	for pattern; do
		grep -qE "^$pattern" <<< "$now" || return
	done
}

# until_screen WHAT COMMAND...: as wait_until; what comes behind needs it.
until_screen()
{
	wait_until "$@" || exit 1
}

# comes PATTERN...: it comes to be so.
comes()
{
	until_screen "the screen has: $*" sees "$@"
}

# row N: a line of the screen, from 1
row()
{
	screen | sed "$1!d; s/  */ /g; s/ \$//"
}

# rows: the names in the first column
rows()
{
	screen | sed '1,4d; /^q quit/d; /^filter:/d' | awk 'NF { print $1 }' | tr '\n' ' '
}

rows_are()
{
	[ "$(rows)" = "$1 " ]
}

clock()
{
	row 2 | sed 's/.* //'
}

# ticks N: until the clock on the screen has gone on so often
ticks()
{
	local i before

	for ((i = 0; i < $1; i++)); do
		before=$(clock)
		wait_until 'the clock goes on' clock_is_not "$before"
	done
}

clock_is_not()
{
	[ "$(clock)" != "$1" ]
}

of_terminal()
{
	terminal display-message -p "#{$1}"
}

# begin ARGUMENT...: top in the terminal's shell
begin()
{
	keys "umbel top $*" Enter
	comes 'q quit'
}

pid_of_top()
{
	pgrep -P "$(of_terminal pane_pid)" umbel
}

is_on_main_screen()
{
	[ "$(of_terminal alternate_on) $(of_terminal cursor_flag)" = '0 1' ]
}

# is_sane STATUS: it ends with that, and the terminal is as it was.
is_sane()
{
	until_screen 'it ends' is_on_main_screen
	keys "echo \"status \$?\"" Enter # no list of commands: Ctrl-C ends it
	comes "status $1"
	keys "clear; stty -g > '$TMPDIR/stty.after'; echo 'that was it'" Enter
	comes 'that was it'
	cmp -s "$TMPDIR/stty.before" "$TMPDIR/stty.after" || complain "after status $1 the terminal is not as it was"
	keys clear Enter
}

expect 2 'umbel: top: it needs a terminal; *' umbel top
terminal new-session -d -x 80 -y 24 "exec env PS1='\$ ' HISTFILE= bash --norc --noprofile" ||
	complain 'no terminal'
keys "stty -g > '$TMPDIR/stty.before'; umbel top; echo \"status \$?\"" Enter
comes "umbel: no fabric 'default' is up" 'status 1'
umbel up --hosts 3 > /dev/null
# ncurses leaks what it has made before it finds that out
keys 'clear; ASAN_OPTIONS=detect_leaks=0 TERM=nonsense umbel top; echo "status $?"' Enter
comes "umbel: top: no terminal that it knows .*'nonsense'" 'status 2'

# ---- h2 sends to h1, and to a group; h3 sent in vain
serve rc h1 ib_send_bw -D 500
client rc h2 ib_send_bw -D 500
serve group h1 ib_send_bw -D 500 -r 1024 -s 64 -c UD -g
client group h2 ib_send_bw -D 500 -r 1024 -s 64 -c UD -g
start vain h3 mckey -s -m 239.9.9.9
wait_ended vain 0
lost=$(umbel show drops --json | python3 -c 'import json, sys
print(sum(d["count"] for d in json.load(sys.stdin)["drops"] if d["node"] == "umbel_h3_0"))')
[ "$lost" -ge 10 ] || complain "$lost of 10 packets to a group without members are lost"
keys clear Enter
begin
rate='[0-9.]+[KMGT]?' much='[0-9.]+[KMGT]'
comes 'umbel top default: 3 hosts, [0-9]+ programs, [0-9]+ queue pairs, [2-9] groups' \
	'1 ports 2 groups 3 connections 4 qps 5 processes [0-9][0-9]:' \
	'by SENT B/s, largest first; every 1 s; 6 of 6 rows' \
	'NODE PORT SENT B/s RCVD B/s SENT P/s RCVD P/s DROPS DROPS/s' \
	"umbel_h2_0 1 $much $rate $rate $rate" "umbel_h3_0 1 0 0 0 0 $lost 0" 'q quit'
[ "$(row 24)" = 'q quit 1-5 view < > column r reverse / filter p pause h help' ] ||
	complain "line 24: $(row 24)"
[[ $(rows) == *umbel_h2_0*umbel_h3_0* ]] || complain "not sorted by bytes: $(rows)"

# ---- sort
keys '<' '<'
comes 'by NODE, in order;'
until_screen 'by name' rows_are 'sw1 sw1 sw1 umbel_h1_0 umbel_h2_0 umbel_h3_0'
keys r
comes 'by NODE, in reverse order;'
until_screen 'by name, reversed' rows_are 'umbel_h3_0 umbel_h2_0 umbel_h1_0 sw1 sw1 sw1'
keys Right Right Right Right Right Right
comes 'by DROPS, largest first;'
until_screen 'drops first' sees 'by DROPS'
[ "$(row 5 | awk '{ print $1, $7 }')" != 'umbel_h3_0 0' ] || complain "not by drops: $(row 5)"
keys '<'
comes 'by RCVD P/s, largest first;'

# ---- filter
keys / H3
comes 'filter: H3_'
until_screen 'h3 alone' rows_are umbel_h3_0
keys Enter
comes "by RCVD P/s, .*; 1 of 6 rows with 'H3'" 'q quit'
keys / nonsenses BSpace Enter
comes 'no such rows' ".* 0 of 6 rows with 'nonsense'"
keys / Escape
comes '.* 6 of 6 rows$'

# ---- the other views
keys 2
comes 'MGID MLID MEMBERS ATTACHED SENT B/s SENT P/s SENT P' \
	"ff[0-9a-f:]* 0xc0[0-9a-f]+ [1-9] [1-9] $much $much [0-9]" 'ff12:401b:ffff::ffff:ffff 0xc000 0 0 0 0 0'
keys 3
comes 'HOST PID BY STATE QPN PEER SENT B/s SENT P/s' \
	"h2 [0-9]+ hand RTS 0x[0-9a-f]{6} h1 0x[0-9a-f]{6} $much $much" 'h1 [0-9]+ hand RT[RS] 0x.* h2 0x'
keys 4
comes 'HOST QPN TYPE STATE PID RECVS UNREAD WAITING SENT B/s SENT P/s' \
	"h2 0x[0-9a-f]{6} RC RTS [0-9]+ [0-9]+ [0-9]+ [0-9]+ $much $much" \
	"h2 0x[0-9a-f]{6} UD RTS [0-9]+ [0-9]+ [0-9]+ - $much $much"
keys 5
comes 'PID PROGRAM HOST QPS CQS MRS IDS JOINS SENT B/s SENT P/s' \
	"[0-9]+ ib_send_bw h2 1 [12] 1 0 0 $much $much" "[0-9]+ ib_send_bw h2 1 [12] - 0 0 $much"
keys Tab
comes 'NODE PORT'

# ---- pause: what runs on does not show
keys p
comes '.* PAUSED'
ticks 1
before=$(screen | sed 2d)
ticks 3
[ "$before" = "$(screen | sed 2d)" ] || complain "it goes on while it pauses"
goes_on()
{
	[ "$before" != "$(screen | sed 2d | sed 's/PAUSED/      /')" ] && ! sees '.* PAUSED'
}
keys p
until_screen 'it goes on' goes_on

# ---- sizes
terminal resize-window -x 120 -y 30
foot()
{
	[[ $(row "$1") == q\ quit* ]]
}
until_screen 'the last of 30 lines' foot 30
comes 'NODE .*DROPS/s SENT P RCVD P'
keys 4
comes 'HOST .* SENT P/s PEER' 'h2 0x.* h1 0x[0-9a-f]{6}'
keys 1 '<' '<' '<' '<' '<' # to the first column
comes 'by NODE, in order'
# a clock that has no room does not run into the views
terminal resize-window -x 60 -y 24
comes '1 ports 2 groups 3 connections 4 qps 5 processes *$'
terminal resize-window -x 80 -y 8
until_screen 'the last of 8 lines' foot 8
until_screen 'three rows' rows_are 'sw1 sw1 sw1'
keys Down
until_screen 'one down' rows_are 'sw1 sw1 umbel_h1_0'
keys End
until_screen 'the last' rows_are 'umbel_h1_0 umbel_h2_0 umbel_h3_0'
keys PageUp
until_screen 'a page up' rows_are 'sw1 sw1 sw1'
terminal resize-window -x 9 -y 2
terminal resize-window -x 80 -y 24
until_screen 'the last of 24 lines' foot 24

# ---- help
keys h
comes 'q +quit' '/ filter'
keys x
comes 'NODE PORT'

# ---- how it ends
keys q
is_sane 0
begin groups --interval 2
comes 'MGID' '.* every 2 s;'
kill -TERM "$(pid_of_top)"
is_sane 143
begin processes
keys C-c
is_sane 130
# signals that mean nothing to it, too
for signal in USR1:138 ALRM:142 RTMIN+3:165 ABRT:134; do
	begin ports
	kill -"${signal%:*}" "$(pid_of_top)"
	is_sane "${signal#*:}"
done
begin qps
keys C-z
comes '.*Stopped'
keys clear Enter fg Enter
comes 'q quit' 'HOST QPN'
keys q
is_sane 0

# the daemon is stopped: that is said, and keys do what they do
begin
daemon=$(field pid default)
kill -STOP "$daemon"
comes '.* no reply for [0-9]+ s'
keys q
is_sane 0
kill -CONT "$daemon"

# who has its terminal taken away ends
begin
pid=$(pid_of_top) server=$(of_terminal pid)
terminal kill-server
until_screen 'it ends without a terminal' gone "$pid"
until_screen 'so does what the next one would talk to' gone "$server"
terminal new-session -d -x 80 -y 24 "exec env PS1='\$ ' HISTFILE= bash --norc --noprofile"

# the fabric ends
begin
for name in client-rc server-rc client-group server-group; do
	kill_hard "$name"
done
umbel down > /dev/null
comes "umbel: fabric 'default' is not there any more: "
is_sane 1
exit $failed
