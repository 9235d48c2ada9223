#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Nothing is left of hosts that are namespaces, with interfaces of IPoIB, one in a partition, and an Ethernet of
# their own, whoever is killed: no namespace, no mount, no network device, no file.

. "${0%/*}/lab.sh"

# up: a fabric with a program on h1 that sleeps until $TMPDIR/end is written to.
up()
{
	umbel up --hosts 3 --ipoib --partitions "$TMPDIR/partitions" --ipoib-pkey 1 --roce @h1 --roce-hosts 2 \
		> /dev/null || exit 1
	rm -f "$TMPDIR/end" "$TMPDIR/sleeper.out"
	mkfifo "$TMPDIR/end"
	umbel exec h1 -- sh -c "hostname; read x < $TMPDIR/end" > "$TMPDIR/sleeper.out" &
	sleeper=$!
	wait_until "a program runs on h1" grep -q h1 "$TMPDIR/sleeper.out"
}

# end_sleeper: lets the program end by itself
end_sleeper()
{
	echo end > "$TMPDIR/end"
	wait "$sleeper" || complain "the program on h1 ends with status $?"
	rm "$TMPDIR/end"
}

echo 'Default=0x7fff,ipoib: ALL=full; One=0x1: 0x02756d0000000101=full;' > "$TMPDIR/partitions"
remember
up
expect 0 '*ib0.8001*' umbel exec h1 -- ip link
not as_before || complain "a fabric leaves no traces while it is up"

# the program outlives its fabric, and takes the last of it along
umbel down > /dev/null
end_sleeper
nothing_left 'umbel down under a program'

up
kill -9 "$sleeper"
wait "$sleeper" 2> /dev/null
umbel down > /dev/null
rm "$TMPDIR/end"
nothing_left 'umbel exec was killed'

up
kill -9 "$(keeper)"
expect 0 h2 umbel exec h2 -- hostname
end_sleeper
umbel down > /dev/null
nothing_left 'the keeper was killed'

up
daemon=$(field pid default)
kill -9 "$daemon"
wait_until "the daemon is gone" gone "$daemon"
end_sleeper
expect 1 '*' umbel down
umbel down --all --yes --force
nothing_left 'the daemon was killed'

up
daemon=$(field pid default)
keeper=$(keeper)
kill -STOP "$keeper"
kill -9 "$daemon"
wait_until "the keeper is gone, too" gone "$keeper"
end_sleeper
umbel down --all --yes --force
nothing_left 'the daemon was killed while the keeper was stopped'

up
kill -STOP "$(keeper)"
umbel down > /dev/null
end_sleeper
nothing_left 'umbel down while the keeper was stopped'

# the private fabric of umbel run
rm -f "$TMPDIR/runner.out"
umbel run --hosts 2 --ipoib --roce @h2 --host h2 -- sh -c 'hostname; echo $$; exec sleep 1000' > "$TMPDIR/runner.out" &
runner=$!
wait_until "the command runs" grep -q '^[0-9]' "$TMPDIR/runner.out"
kill -9 $runner
wait $runner 2> /dev/null
kill "$(tail -n 1 "$TMPDIR/runner.out")"
nothing_left 'umbel run was killed'

# killed while hosts are made, at one moment or another
making()
{
	pgrep -oxf 'umbel daemon --name default --roce-hosts 300.*'
}

has_keeper()
{
	making > /dev/null && pgrep -P "$(making)" -x umbel-keeper > /dev/null
}

for moment in 0 0.1 0.4; do
	umbel up --roce-hosts 300 > /dev/null 2>&1 &
	runner=$!
	wait_until "hosts are made" has_keeper
	sleep $moment
	daemon=$(making)
	kill -9 "$daemon"
	wait $runner
	wait_until "the daemon is gone" gone "$daemon"
	umbel up --roce-hosts 1 > /dev/null || complain "a fabric cannot start where another was killed"
	umbel down --all --yes --force > /dev/null
	nothing_left "the daemon was killed $moment s after it began to make hosts"
done
