# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts here share: `umbel ibsim` in the place of Debian's ibsim, and its unmodified clients.
# Names of its sockets are the whole machine's, so each test has its own.

. "$UMBEL_TESTS/system/lib.sh"

export IBSIM_SOCKNAME=umbel-test-$number
cd "$TMPDIR" || exit	# libumad2sim writes to the current directory

# ibsim_for NAME FABRIC OPTION...: starts the server of a fabric that is up, as program NAME.
ibsim_for()
{
	local name=$1 fabric=$2
	shift 2
	launch "$name" umbel ibsim --name "$fabric" "$@"
	wait_said "$name" 'serving clients of ibsim'
}

# at HOST COMMAND...: as a user of ibsim runs it there.
at()
{
	local host=$1
	shift
	SIM_HOST=$host timeout 60 ibsim-run "$@"
}
