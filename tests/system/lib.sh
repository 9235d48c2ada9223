# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts in tests/system share. Sourced by them; ctest runs them by
# tests/in-sandbox.sh, so umbel is on the PATH and no other fabric is in reach.

set -u -o pipefail

failed=0
started=()	# the programs that start() started, by name; not "programs", as scripts call a folder so
declare -A pid=() ended=()
ports=0
deadline=$((${UMBEL_TEST_SECONDS:-600} - 60))
patience=$((deadline / 3))	# seconds of one wait

# Ends what still runs. A test that failed shows what its programs printed.
finish()
{
	local name

	for name in "${started[@]}"; do
		[ "${ended[$name]-}" ] || { kill -9 "${pid[$name]}"; wait "${pid[$name]}"; }
	done 2>/dev/null
	[ $failed -ne 0 ] || return 0
	for name in "${started[@]}"; do
		printf '%s\n' "---- $name, ${ended[$name]:+status }${ended[$name]:-never ended}:"
		cat "$TMPDIR/$name.out"
	done >&2
	exit 1
}
trap finish EXIT

# complain WORDS: the test goes on, but has failed.
complain()
{
	echo "FAIL: $*" >&2
	failed=1
}

# expect STATUS TEXT COMMAND...: it ends with that status, and what it prints, standard error
# included, is TEXT, a pattern of [[ ]] ('*' fits all).
expect()
{
	local status=$1 text=$2 output got=0
	shift 2
	output=$("$@" 2>&1) || got=$?
	[ "$got" -eq "$status" ] ||
		complain "status $got, not $status: $*"$'\n'"$output"
	# shellcheck disable=SC2053
	[[ $output == $text ]] ||
		complain "$*"$'\n'"expected: $text"$'\n'"got:      $output"
}

# wait_until WHAT COMMAND...: until the command succeeds, or for $patience seconds, or until the test has run for $deadline: so
# it can still say what is wrong before ctest ends it. Once one was in vain, others have ten seconds.
wait_until()
{
	local what=$1 end=$((SECONDS + patience))
	shift
	[ $end -lt $deadline ] || end=$deadline
	until "$@"; do
		if [ $SECONDS -ge $end ]; then
			complain "in vain: wait until $what"
			[ $patience -lt 10 ] || patience=10
			return 1
		fi
		sleep 0.02
	done
}

# left_out WORDS...: whether tools/weak-suites.py leaves this case out: as "a_b" it fits a pattern of UMBEL_TEST_LEFT_OUT.
left_out()
{
	local patterns pattern case="$*"

	read -ra patterns <<< "${UMBEL_TEST_LEFT_OUT-}"
	for pattern in "${patterns[@]}"; do
		# shellcheck disable=SC2053
		[[ ${case// /_} != $pattern ]] || return 0
	done
	return 1
}

# not COMMAND...
not()
{
	! "$@"
}

# field JSON-KEY NAME: a number in the status of fabric NAME.
field()
{
	umbel status --name "$2" --json | sed -n "s/^ *\"$1\": \([0-9]*\),*\$/\1/p"
}

# Whether the process has ended, each of its threads; the one that should reap it may take its time.
gone()
{
	! grep -qE '^State:\s*[A-WY]|^Threads:\s*([2-9]|[1-9][0-9])' "/proc/$1/status" 2>/dev/null
}

# ---- programs in the background

# start NAME HOST COMMAND...: on that host of the default fabric, or with "all" hosts in sight.
# Its output is kept, line by line, under that name.
start()
{
	local name=$1 host=$2
	shift 2
	[ "$host" != all ] || host=
	launch "$name" umbel exec ${host:+"$host"} -- stdbuf -oL "$@"
}

# launch NAME COMMAND...: on no host.
launch()
{
	local name=$1
	shift
	: > "$TMPDIR/$name.out"
	"$@" < /dev/null > "$TMPDIR/$name.out" 2>&1 &
	[ "${pid[$name]-}" ] || started+=("$name")
	pid[$name]=$!
	unset "ended[$name]" # one before it had the name
}

# says NAME TEXT [TIMES]: whether it has printed this line (a basic regular expression that
# begins one) so often.
says()
{
	[ "$(grep -c "^$2" "$TMPDIR/$1.out")" -ge "${3:-1}" ]
}

says_or_ended()
{
	says "$@" || gone "${pid[$1]}"
}

# wait_said NAME TEXT [TIMES]: until it has. Nonzero, and a complaint, if it ends without.
wait_said()
{
	wait_until "$1 says '$2'" says_or_ended "$@" || return
	says "$@" || { complain "$1 ends and does not say '$2'"; return 1; }
}

# is_refused CLIENT: perftest with -R connects twice. The second time its client may come before its server listens again, is
# refused, no such service (by UD a SIDR_REP says so), and crashes when it wants to try again (perftest 4.5).
is_refused()
{
	says "$1" '.*\(RDMA_CM_EVENT_REJECTED; error: 8\|Unexpected CM event bl blka 8\|RDMA_CM_EVENT_UNREACHABLE; error: 1\)'
}

# figures NAME: a pattern of what perftest has measured. It measures how fast the processor's clock is, too; where it has said
# that it makes no sense of a busy machine's, figures are "inf", or 0 where -F says that this is no error.
figures()
{
	if says "$1" 'Correlation coefficient r^2: '; then
		echo '[0-9.inf]*  *[0-9i]'
	else
		echo '[0-9.]*  *[0-9]'
	fi
}

# wait_ended NAME STATUS: until it ends, with that status.
wait_ended()
{
	[ "${pid[$1]-}" ] || { complain "$1 was not started"; return 1; }
	wait_until "$1 ends" gone "${pid[$1]}" || return
	ended[$1]=0
	wait "${pid[$1]}" 2>/dev/null || ended[$1]=$?
	[ "${ended[$1]}" -eq "$2" ] || complain "status ${ended[$1]}, not $2: $1"
}

# kill_hard NAME: it has no time to say anything.
kill_hard()
{
	kill -9 "${pid[$1]}"
	wait_ended "$1" 137
}

# expect_said NAME TEXT...: it has printed these lines.
expect_said()
{
	local name=$1 text
	shift
	for text in "$@"; do
		says "$name" "$text" || complain "$name does not say '$text'"
	done
}

# A script's own among those that run on this machine at the same time: 0 to 749 (in-sandbox.sh).
number=${UMBEL_TEST_NUMBER:-$(($$ % 750))}

# new_port: sets $port to an IP port in nobody's use. A script has 16 to itself.
new_port()
{
	while :; do
		port=$((20000 + number * 16 + ports++ % 16))
		port_in_state "$port" '..' || break
	done
}

# port_in_state PORT STATE: whether a TCP socket has that local port and state, as the kernel
# writes them.
port_in_state()
{
	grep -qs "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$1") [0-9A-F:]* $2 " \
		/proc/net/tcp /proc/net/tcp6
}

listening_or_ended()
{
	port_in_state "$2" 0A || gone "${pid[$1]}"
}

# wait_listening NAME PORT: until the server listens. Nonzero, and a complaint, if it ends.
wait_listening()
{
	wait_until "$1 listens" listening_or_ended "$@" || return
	port_in_state "$2" 0A || { complain "$1 ends and does not listen"; return 1; }
}

# plain_tshark OPTION...: tshark that knows no protocol above UDP but InfiniBand, and none in its payload: in random bytes it
# finds one at times, and that malformed.
plain_tshark()
{
	local known='frame|erf|eth|ethertype|vlan|ip|ipv6|icmp|icmpv6|igmp|udp|data|_ws[.].*|infiniband'

	if [ ! -e "$TMPDIR/wireshark" ]; then
		mkdir "$TMPDIR/wireshark"
		tshark -G protocols 2> /dev/null | cut -f 3 | grep -vxE "$known" > "$TMPDIR/wireshark/disabled_protos"
	fi
	WIRESHARK_CONFIG_DIR=$TMPDIR/wireshark tshark -n --disable-heuristic eth_over_ib "$@"
}
