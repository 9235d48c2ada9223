#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Runs one test: in-sandbox.sh UMBEL LIBDIR COMMAND [ARGUMENT]...
# Called by ctest for every test that may start a fabric. Each gets a runtime directory of
# its own, so that tests run side by side and touch no fabric of the user's. Fabrics that the
# test leaves up are ended. A private fabric, of `umbel run`, must have ended by itself. UMBEL_TESTS is the folder of this
# script, for scripts of tests that are elsewhere.

set -u

export UMBEL=$1 UMBEL_LIBDIR=$2 UMBEL_TESTS
UMBEL_TESTS=$(dirname "$(readlink -f "$0")")
shift 2
export PATH="${UMBEL%/*}:$PATH"
unset UMBEL_FABRIC UMBEL_HOST XDG_RUNTIME_DIR
exec 3>&- # ctest leaves it open: a test that needs it would fail by hand only

# Not below the build directory: the path of a socket must be short. Its number is of no other test that runs on this
# machine now, in another checkout neither: with it come names that the whole machine shares, as IP ports.
for ((i = 0, number = $$ % 750; i < 750; i++, number = (number + 1) % 750)); do
	sandbox=/tmp/umbel-test.$number
	mkdir -m 700 "$sandbox" 2>/dev/null && break
	sandbox=
done
[ "$sandbox" ] || { echo "all of /tmp/umbel-test.0 to 749 are there: remove those that tests have left" >&2; exit 1; }
export UMBEL_TEST_NUMBER=$number
export UMBEL_RUNTIME_DIR=$sandbox/run TMPDIR=$sandbox/tmp
mkdir -m 700 "$UMBEL_RUNTIME_DIR" "$TMPDIR"

clean_up()
{
	"$UMBEL" down --all --yes --force >/dev/null
	rm -rf "$sandbox"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$@"
status=$?
left=$(find "$UMBEL_RUNTIME_DIR" -maxdepth 1 -name '.run-*')
if [ "$status" -eq 0 ] && [ -n "$left" ]; then
	echo "a private fabric was left behind: $left" >&2
	exit 1
fi
exit "$status"
