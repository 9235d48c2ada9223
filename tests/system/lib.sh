# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts in tests/system share. Sourced by them; ctest runs them by
# tests/in-sandbox.sh, so umbel is on the PATH and no other fabric is in reach.

set -u -o pipefail

failed=0
trap '[ $failed -eq 0 ] || exit 1' EXIT

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

# wait_until WHAT COMMAND...: until the command succeeds; at most 20 s.
wait_until()
{
	local what=$1 start=$SECONDS
	shift
	until "$@"; do
		if [ $((SECONDS - start)) -ge 20 ]; then
			complain "in vain: wait until $what"
			return 1
		fi
		sleep 0.02
	done
}

# field JSON-KEY NAME: a number in the status of fabric NAME.
field()
{
	umbel status --name "$2" --json | sed -n "s/^ *\"$1\": \([0-9]*\),*\$/\1/p"
}

# Whether the process has ended; the one that should reap it may take its time.
gone()
{
	! grep -q '^State:[[:space:]]*[A-WY]' "/proc/$1/status" 2>/dev/null
}
