#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# umbel run --checked, on small programs that are wrong (mistakes.c), each beside its right twin: the wrong one
# is told of its rule and of no other, the right one of nothing. Then the status, JSON, JUnit, suppressions, and what is
# wrong on the command line.
#
# checked.sh PROGRAM: checked.mistakes.

. "${0%/*}/../system/lib.sh"

program=$1
page=$(cd "${0%/*}/../.." && pwd)/docs/checked.md
cd "$TMPDIR" || exit 1

fail()
{
	complain "$*"
	exit
}

# check NAME wrong|right [OPTION]...: runs it, keeping what it says. Its status: $status.
check()
{
	local name=$1 twin=$2
	shift 2
	status=0
	umbel run --checked "$@" --hosts 4 -- "$program" "$name" "$twin" > said 2>&1 || status=$?
}

rules()
{
	sed -n 's/^umbel: .*\[\([a-z-]*\)\]$/\1/p' said | sort -u | tr '\n' ' '
}

n=0
while read -r name rule; do
	check "$name" right
	[ -z "$(rules)" ] || fail "$name right is told of $(rules): $(cat said)"
	[ "$status" -eq 0 ] || fail "$name right ends with $status: $(cat said)"
	check "$name" wrong
	[ "$(rules)" = "$rule " ] || fail "$name wrong is told of '$(rules)', not of $rule: $(cat said)"
	case $(sed -n 's/^umbel: \([a-z]*\): .*\[.*\]$/\1/p' said | sort -u) in
	error) expect=99 ;;
	*) expect=0 ;;
	esac
	[ "$status" -eq "$expect" ] || fail "$name wrong ends with $status, not with $expect: $(cat said)"
	n=$((n + 1))
done < <("$program" --list)
[ "$n" -ge 15 ] || fail "only $n programs were run"

# each rule is in the page
while read -r rule _; do
	grep -q "\`$rule\`" "$page" || fail "docs/checked.md has no rule $rule"
done < <(umbel explain rule)

# both places, by line
check handle-destroyed wrong --json all.json --junit all.xml
grep -q '^  created: .*handle_destroyed() at .*mistakes.c:[0-9]' said || fail "no place: $(cat said)"
grep -q '^  destroyed: .*handle_destroyed() at .*mistakes.c:[0-9]' said || fail "no second place: $(cat said)"
grep -q '^umbel: checked: 1 error, 0 warnings, 0 notes in 1 of 1 process$' said || fail "no sum: $(cat said)"
python3 - << 'end' || fail "the JSON is wrong: $(cat all.json)"
import json
report, = json.load(open("all.json"))
assert report["rule"] == "address-handle-destroyed-in-use" and report["level"] == "error", report
assert [p["what"] for p in report["places"]] == ["created", "destroyed"], report
assert all(p["frames"][0]["function"] == "handle_destroyed" for p in report["places"]), report
end
grep -q 'classname="umbel.checked" name="address-handle-destroyed-in-use at .*mistakes.c:' all.xml || fail "not in JUnit: $(cat all.xml)"
grep -q 'failures="1"' all.xml || fail "no failure in JUnit: $(cat all.xml)"

status=0
umbel run --checked=warn --hosts 4 -- "$program" handle-destroyed wrong > said 2>&1 || status=$?
[ "$status" -eq 0 ] || fail "--checked=warn ends with $status"
[ -n "$(rules)" ] || fail "--checked=warn says nothing"

# suppressions: by rule, by function, by file, by the program's name; one for another rule does not count
for line in address-handle-destroyed-in-use 'address-handle-*:handle_destroyed' '*:mistakes.c' '*: checked.mistakes'; do
	printf '# a comment\n\n%s\n' "$line" > suppressions
	check handle-destroyed wrong --suppress suppressions
	[ "$status" -eq 0 ] && [ -z "$(rules)" ] || fail "'$line' suppresses nothing: $(cat said)"
done
echo 'overlapping-buffers:handle_destroyed' > suppressions
check handle-destroyed wrong --suppress suppressions
[ "$status" -eq 99 ] || fail "another rule's suppression counts: $(cat said)"

# refused STATUS TEXT OPTION...: before the command starts
refused()
{
	local expect=$1 text=$2
	shift 2
	status=0
	umbel run "$@" -- touch started > said 2>&1 || status=$?
	[ "$status" -eq "$expect" ] || fail "umbel run $* ends with $status, not with $expect"
	grep -q "$text" said || fail "umbel run $* says: $(cat said)"
	[ ! -e started ] || fail "umbel run $* has started the command"
}
echo 'no-such-rule' > suppressions
refused 2 "'suppressions', line 1: no rule has the name 'no-such-rule'" --suppress suppressions
echo 'overlapping-buffers function' > suppressions
refused 2 "line 1: behind 'overlapping-buffers' comes ':'" --suppress suppressions
refused 2 "cannot read 'none'" --suppress none
refused 2 'checked=x: it is' --checked=x
refused 1 "cannot write 'none/all.json'" --checked --json none/all.json

# children, one that ends by a signal, one that ends by _exit(); none of RDMA
umbel run --checked --json all.json --hosts 4 -- sh -c "\"$program\" handle-destroyed wrong & \"$program\" receives-overlap wrong & wait; true" > said 2>&1 && fail "two children: $(cat said)"
grep -q '^umbel: checked: 1 error, 1 warning, 0 notes in 2 of 2 processes$' said || fail "two children: $(cat said)"
umbel run --checked -- true > said 2>&1 || fail "true: $(cat said)"
grep -q 'no process has opened an RDMA device' said || fail "true: $(cat said)"

# exec, of one host and of all; the command's own status is kept
umbel up --hosts 4
status=0
umbel exec --checked h1 -- sh -c 'ibv_devinfo > /dev/null; exit 7' > said 2>&1 || status=$?
[ "$status" -eq 7 ] || fail "exec --checked ends with $status: $(cat said)"
grep -q '^umbel: checked: nothing is wrong in 1 process$' said || fail "exec: $(cat said)"
# a signal that is for the program, which tells nobody else
status=0
umbel exec --checked h1 -- bash -c 'trap "exit 5" USR1; touch waits; while :; do sleep 0.05; done' > said 2>&1 &
wait_until "the program waits" test -e waits
kill -USR1 $!
wait $! || status=$?
[ "$status" -eq 5 ] || fail "after a signal exec --checked ends with $status: $(cat said)"
umbel exec --checked --all -- ibv_devinfo > said 2>&1 || fail "exec --all: $(cat said)"
grep -q '^umbel: checked: nothing is wrong in 4 processes$' said || fail "exec --all: $(cat said)"
umbel down

# a fabric on which all programs are checked
umbel up --hosts 4 --checked
status=0
umbel exec -- "$program" handle-destroyed wrong > said 2>&1 || status=$?
[ "$status" -eq 99 ] && [ "$(rules)" = "address-handle-destroyed-in-use " ] || fail "up --checked: $status: $(cat said)"
umbel set checked=0 > /dev/null
umbel exec -- "$program" handle-destroyed wrong > said 2>&1 || fail "set checked=0: $(cat said)"
umbel down
