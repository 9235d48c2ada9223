#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# UMBEL_LOG chooses what the log prints: in programs, where our libraries print nothing without
# it, and in the daemon that `umbel up` and `umbel run` start, which logs to its file.

. "${0%/*}/lib.sh"

unset UMBEL_LOG
stamp='20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9].[0-9]*Z'
log=$UMBEL_RUNTIME_DIR/default/log

# ---- in programs
umbel up --hosts 2 > /dev/null
program=(/usr/bin/python3 "${0%/*}/raw_packet.py")
refused="*Failed to create QP*"
expect 1 "$refused" umbel exec h1 -- "${program[@]}"
expect 1 "$stamp umbel\\[*\\] verbs warning: ibv_create_qp() fails with EOPNOTSUPP: raw packet queue pairs are not supported"$'\n'"$refused" \
	env UMBEL_LOG=warning umbel exec h1 -- "${program[@]}"
expect 1 "* verbs warning: ibv_create_qp() fails with EOPNOTSUPP: raw packet queue pairs are not supported"$'\n'"$refused" \
	env UMBEL_LOG=verbs=warning umbel exec h1 -- "${program[@]}"
expect 1 "$refused" env UMBEL_LOG=error umbel exec h1 -- "${program[@]}"
expect 1 "* verbs warning: *raw packet *"$'\n'"$refused" \
	env UMBEL_LOG=warning umbel run --hosts 2 --host h1 -- "${program[@]}"

# ---- what is wrong in it is said once, by the command, and the rest counts
expect 1 "umbel: UMBEL_LOG: 'noise=info' has no known part; there are daemon, sm, *"$'\n'"* verbs warning: *raw packet *"$'\n'"$refused" \
	env UMBEL_LOG=noise=info,verbs=debug umbel exec h1 -- "${program[@]}"
expect 0 "umbel: UMBEL_LOG: 'loud' has no known level; there are off, error, warning, info, debug, trace"$'\n'"4 HCAs found:"* \
	env UMBEL_LOG=loud umbel run -- ibv_devinfo -l

expect 0 '*UMBEL_LOG=LEVEL,PART=LEVEL*    packet *    join *' umbel --help

# ---- in the daemon
[ ! -s "$log" ] || complain "a daemon with nothing to warn of logs:"$'\n'"$(cat "$log")"
umbel down > /dev/null
UMBEL_LOG=info umbel up --hosts 2 > /dev/null
grep -q "^$stamp umbel\[$(field pid default)\] sm info: " "$log" ||
	complain "the daemon's log has no line of the subnet manager:"$'\n'"$(cat "$log")"
expect 0 '*sm info: *' env UMBEL_LOG=sm=info umbel run -- \
	sh -c 'cat "$UMBEL_RUNTIME_DIR/$UMBEL_FABRIC/log"'
