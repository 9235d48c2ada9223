#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# umbel run --weak on programs whose mistake only timing shows (mistakes.c): a strong fabric shows none, a weak one each
# within a few seeds, and no seed shows any of their right twins. Then the search: which seed, what it needs, the file that
# repeats it, a hang, and what is wrong on the command line.
#
# mistakes.sh PROGRAM: weak.mistakes.

. "${0%/*}/../system/lib.sh"

program=$1
cd "$TMPDIR" || exit 1

umbel run -- "$program" --all wrong > said 2>&1 || complain "mistakes on a strong fabric: $(cat said)"
# Nearly always 20 seeds show all. Mistakes that depend on time, as the first message after a join, may need more on a busy
# machine.
"$program" --list | sort > left
for ((seed = 1; seed <= 200; seed++)); do
	umbel run --weak="$seed" -- "$program" --all wrong 2>&1 | sed -n 's/: the data is wrong$//p' | sort > found
	comm -23 left found > still && mv still left
	[ -s left ] || break
done
[ ! -s left ] || complain "mistakes that 200 seeds do not show: $(cat left)"
umbel run --weak --runs 12 -- "$program" --all right > said 2>&1 || complain "right programs fail: $(cat said)"

# search STATUS ARGUMENT...: umbel run --weak ARGUMENT ends so. Its output is in the file said.
search()
{
	local expected=$1 status=0
	shift
	umbel run "$@" > said 2>&1 || status=$?
	[ "$status" -eq "$expected" ] || complain "umbel run $*: status $status and not $expected: $(cat said)"
}

search 1 --weak --save needed -- "$program" free-without-fence wrong
grep -q 'free-without-fence: the data is wrong' said || complain "the failing run's output is not shown: $(cat said)"
grep -q 'it needs 1 choice of the fabric' said && grep -q "was carried out late at the receiver" said ||
	complain "what the failure needs is not told: $(cat said)"
[ "$(grep -vc '^#' needed)" -eq 1 ] || complain "not one choice was written: $(cat needed)"
search 1 --weak=./needed -- "$program" free-without-fence wrong
search 1 --weak --junit report.xml --save again -- "$program" free-without-fence wrong
grep -q '<testsuite .*tests="1" failures="1" errors="0"' report.xml || complain "a search that finds something: $(cat report.xml)"
search 0 --weak --runs 2 --junit report.xml -- "$program" free-without-fence right
grep -q '<testsuite .*tests="1" failures="0" errors="0"' report.xml || complain "a search in vain: $(cat report.xml)"
search 0 --weak=./needed -- "$program" free-without-fence right
search 0 --weak=1,complete --runs 3 -- "$program" free-without-fence wrong
search 3 --weak --runs 3 -- sh -c 'exit 3'
grep -q 'fails with status 3 on a strong fabric, too' said || complain "a program that fails anyway: $(cat said)"

# A hang: it does not go on when a datagram has overtaken another one.
search 124 --weak=1,groups --runs 200 --limit 2 --save needed -- sh -c '
	while :; do "$0" datagrams-in-order wrong > /dev/null && exit; [ "$UMBEL_WEAK" ] || exit; sleep 60; done' "$program"
grep -q 'the program hangs with --weak=' said || complain "a hang is not told: $(cat said)"

for wrong in --weak=x --weak=1,all --weak=./none '--weak=./needed --runs 2' '--runs 3' '--weak --runs 0'; do
	# shellcheck disable=SC2086
	search 2 $wrong -- true
done
echo 'h1 0 0 nothing' > broken
search 2 --weak=./broken -- true
