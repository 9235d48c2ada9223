#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel run --junit`: the report as an XML reader sees it, however the run ends.

. "${0%/*}/lib.sh"

report=$TMPDIR/report.xml

# run STATUS OPTION...: with a report
run()
{
	rm -f "$report"
	expect "$1" '*' umbel run --junit "$report" --hosts 2 "${@:2}"
}

# reported TEXT: the report's suite, its properties and its cases, a line each, are that pattern. No time is
# in them, but for being one. Sums fit; both levels have them.
reported()
{
	expect 0 "$1" /usr/bin/python3 - "$report" << 'END'
import sys
import xml.etree.ElementTree
from datetime import datetime

suites = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
assert suites.tag == "testsuites" and len(suites) == 1, suites
suite = suites[0]
assert suite.get("name") == "umbel run" and suite.get("hostname"), suite.attrib
datetime.fromisoformat(suite.get("timestamp"))
cases = suite.findall("testcase")
for of in suites, suite:
    assert int(of.get("tests")) == len(cases)
    assert int(of.get("failures")) == len(suite.findall("testcase/failure"))
    assert int(of.get("errors")) == len(suite.findall("testcase/error"))
    assert float(of.get("time")) >= sum(float(case.get("time")) for case in cases)
print(*[f"{p.get('name')}={p.get('value')}" for p in suite.findall("properties/property")], sep=", ")
for case in cases:
    assert len(case) <= 1
    print(case.get("classname"), ascii(case.get("name")), *[f"{end.tag}: {end.get('message')}" for end in case])
    for end in case:
        assert end.text == end.get("message") and end.get("type") == case.get("classname")
END
}

run 0 -- true
reported "fabric=--hosts 2, hosts=2, switches=1
umbel.run 'true'"

run 3 --host h2 -- sh -c 'exit 3'
reported "fabric=--hosts 2, hosts=2, switches=1, host=h2
umbel.run 'sh -c exit 3' failure: exit status 3"

run 138 -- sh -c 'kill -USR1 $$'
reported "*
umbel.run 'sh -c kill -USR1 \$\$' failure: ended by signal 10 (User defined signal 1)"

run 127 -- nonesuch
reported "*
umbel.run 'nonesuch' failure: exit status 127"

# ---- any bytes
run 1 -- false $'<a href="\'x\'">&amp;\t\n]]>' $'\x01\x1b[1m\xff\xed\xa0\x80' 'grün'
reported "*
umbel.run 'false <a href=\"\\\\'x\\\\'\">&amp;\\\\t\\\\n]]> \\\\ufffd\\\\ufffd[[]1m\\\\ufffd\\\\ufffd gr\\\\xfcn' failure: exit status 1"
run 1 -- false "$(printf 'ä%.0s' {1..9000})"
reported "*\\\\xe4...' failure: exit status 1"

# ---- rules of faults: one fires, one does not
rules=$TMPDIR/rules
cat > "$TMPDIR/send" << 'END'
umbel exec h2 -- ibv_ud_pingpong -n 1 -p $1 &
until umbel exec h1 -- ibv_ud_pingpong -n 1 -p $1 localhost 2> /dev/null; do # it listens
	kill -0 $! || exit 1
	sleep 0.1
done
wait
exit $2
END
printf 'to=h2:* nth=1 delay=1ms\nto=h2:* nth=100000 delay=1ms\n' > "$rules"
new_port
run 125 --faults "$rules" -- bash "$TMPDIR/send" "$port" 0
cases="umbel.faults 'to=h2:\\* nth=1 delay=1ms'
umbel.faults 'to=h2:\\* nth=100000 delay=1ms' failure: the fault has not fired"
reported "*
umbel.run 'bash *'
$cases"
run 5 --faults "$rules" -- bash "$TMPDIR/send" "$port" 5
reported "*
umbel.run 'bash *' failure: exit status 5
$cases"

# ---- what is not the program's
run 125 --faults "$rules.none" -- true
reported "*
umbel.run 'true' error: it was not started: umbel run says why"
run 1 --host h3 -- true
reported "*, host=h3
umbel.run 'true' error: it was not started: umbel run says why"
echo '<nonsense' > "$TMPDIR/topology"
for option in "--topology $TMPDIR/none" "--topology $TMPDIR/topology" "--set nonsense=1" "--roce nonsense"; do
	rm -f "$report"
	# shellcheck disable=SC2086
	expect 125 '*' umbel run --junit "$report" $option -- true
	reported "*
umbel.run 'true' error: it was not started: umbel run says why"
done
run 125 -- sh -c 'kill -9 "$(umbel status --json | sed -n "s/.*\"pid\": \([0-9]*\),/\1/p")"'
reported "*
umbel.run 'sh -c *'
umbel.run 'fabric' error: the fabric failed: umbel run says why"
# one that is killed has not passed, whatever the report was before
expect 0 '' umbel run --junit "$report" -- true
expect 137 '' umbel run --junit "$report" -- sh -c 'kill -9 $PPID'
reported "
umbel run 'umbel run' error: it was killed before it ended"

# ---- the file
expect 0 '*</testsuites>' eval 'umbel run --junit /dev/stdout -- true | cat'
expect 125 "umbel: cannot write '/nowhere/x': *" umbel run --junit /nowhere/x -- touch "$TMPDIR/ran"
[ ! -e "$TMPDIR/ran" ] || complain 'it ran, and nobody hears of it'
expect 125 "umbel: cannot write '/dev/full': No space left on device" umbel run --junit /dev/full -- true
expect 4 "umbel: cannot write '/dev/full': No space left on device" umbel run --junit /dev/full -- sh -c 'exit 4'
