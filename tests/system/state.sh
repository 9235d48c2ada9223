#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the subnet manager knows outlives the fabric (--state): LIDs and groups with their MLIDs are there
# again after `umbel down` and after the daemon was killed, at whatever moment; a file that is none, or
# another fabric's, is refused by its line, and entries that do not fit are passed over by theirs.

. "${0%/*}/mckey.bash"

cd "$TMPDIR" || exit 1
group=ff12:4001:ffff::f01:1

# lid HOST: of its port, as smpquery tells it
lid()
{
	umbel exec "$1" -- smpquery -G portinfo "0x02756d0000000${1#h}01" 1 | sed -n 's/^Lid:\.*//p'
}

# mlid: the MLID of the group, as the subnet administrator tells it
mlid()
{
	umbel exec h1 -- saquery -g | awk -F'\\.\\.+' -v mgid="$group" '
		$1 ~ /MGID$/ { found = $2 == mgid } found && $1 ~ /Mlid$/ { print $2 }'
}

in_file()
{
	grep -q "$1" lab.state
}

# join: two receivers of two groups; ours is the second one, and has its second MLID
join()
{
	receive first h3 -m 239.2.2.2
	wait_joined first
	receive second h2 -m 239.1.0.1
	wait_joined second
}

# its_own: all is as it was before the fabric ended
its_own()
{
	expect 0 '6' lid h2
	expect 0 '1' lid h1
	expect 0 '0xC002' mlid
	expect 0 "*MLID      0xc002*members   -*" group "$group"
}

umbel up --hosts 4 --state lab.state > /dev/null
umbel sm event lid-change h2:1
join
expect 0 '0xC002' mlid
expect 0 "fabric 'default' is down" umbel down
wait_until 'first ends' gone "${pid[first]}"
wait_until 'second ends' gone "${pid[second]}"
in_file '^lid 0x02756d0000000201 6$' || complain 'the LID of h2 is not in the file'
cp lab.state at_down

# who joins again is a member of the same group, whoever comes first
expect 0 "fabric 'default' is up: 4 hosts, *" umbel up --hosts 4 --state lab.state
its_own
receive other h4 -m 239.3.3.3
wait_joined other
receive again h2 -m 239.1.0.1
wait_joined again
expect 0 '0xc002' joined_mlid again
expect 0 '0xc003' joined_mlid other
send sender h1 -m 239.1.0.1
wait_complete sender again
wait_until 'the third group is in the file' in_file '^group .* mlid 0xc003 '
wait_until 'ours has ended in the file' not in_file " mlid 0xc002 "

# a daemon that is killed leaves what it wrote last
kill -9 "$(field pid default)"
expect 0 "fabric 'default' is up: 4 hosts, *" umbel up --hosts 4 --state lab.state
expect 0 '6' lid h2
expect 0 '*MLID      0xc003*members   -*' group ff12:4001:ffff::f03:303
umbel down > /dev/null

# whenever it is: the file is a whole one, the last or the one before
cp at_down lab.state
for i in {1..20}; do
	umbel up --hosts 4 --state lab.state > /dev/null || complain "not up after $i kills"
	its_own
	umbel sm event lid-change h4:1
	daemon=$(field pid default)
	sleep "0.$((45 + i % 10))" # when it writes, more or less
	kill -9 "$daemon"
	wait_until 'the daemon is gone' gone "$daemon"
done
umbel up --hosts 4 --state lab.state > /dev/null
its_own

# another fabric may not use it meanwhile
expect 1 "umbel: the state in '$TMPDIR/lab.state' is in use by another fabric" \
	umbel up --name other --state ./lab.state
umbel down > /dev/null

# of two that begin with a new file at once one has it
for _ in {1..5}; do
	launch one umbel up --name one --hosts 2 --state new.state
	launch two umbel up --name two --hosts 2 --state new.state
	refused=
	for each in one two; do
		ended[$each]=0
		wait "${pid[$each]}" || refused+=$each
	done
	expect 0 "umbel: the state in '$TMPDIR/new.state' is in use by another fabric" cat "$refused.out"
	umbel down --name one > /dev/null 2>&1 || umbel down --name two > /dev/null
	rm new.state
done

# who removes the file of a fabric has it lose it, not the next one
umbel up --name one --hosts 2 --state new.state > /dev/null
wait_until 'the file is there' grep -q ^lid new.state
rm new.state
umbel up --name two --hosts 2 --state new.state > /dev/null
wait_until 'the file is there again' grep -q ^lid new.state
umbel sm --name one event lid-change h1:1
expect 1 "*sm error: the state cannot be written to '$TMPDIR/new.state': another fabric uses it
fabric 'one' is down" umbel down --name one
expect 0 "fabric 'two' is down" umbel down --name two
grep -q '^lid 0x02756d0000000101 1$' new.state || complain 'a fabric has written over the file of another one'
rm new.state

# a private fabric keeps its state, too; a symbolic link leads to the file, whose mode stays
cp at_down real.state
chmod 600 real.state
ln -s real.state link.state
expect 0 '*Lid:*6*' umbel run --hosts 4 --state link.state -- sh -c \
	'umbel sm event lid-change h1:1; smpquery -G portinfo 0x02756d0000000201 1'
grep -q '^lid 0x02756d0000000101 2$' real.state || complain 'the LID of h1 is not in the file'
expect 0 'real.state 600' sh -c 'echo $(readlink link.state) $(stat -c %a real.state)'

# another topology: what does not fit is named
cp at_down lab.state
expect 0 "umbel: $TMPDIR/lab.state:4: 3 entries do not fit this fabric and are passed over; this is the first
fabric 'default' is up: 2 hosts, *" umbel up --hosts 2 --state lab.state
expect 0 '6' lid h2
umbel down > /dev/null
not in_file 0x02756d0000000401 || complain 'the file has the LID of a host that is no more'

# refused WHY: lab.state as it is
refused()
{
	expect 1 "umbel: $TMPDIR/lab.state:$1" umbel up --state lab.state
	expect 125 "umbel: $TMPDIR/lab.state:$1" umbel run --state lab.state -- true
}
head -n -1 at_down > lab.state
refused "10: expected 'end', found the end of the file: the file was cut"
sed 's/umbel-state 1/umbel-state 0/' at_down > lab.state
refused "1: expected 'umbel-state 1', found 'umbel-state 0'"
sed '3s/ 6$/ 60000/' at_down > lab.state
refused "3: expected a LID from 1 to 49151, found '60000'"
{ printf x; head -c 100000 /dev/urandom; } > lab.state # its first line is not empty
refused "1: expected 'umbel-state 1', found '*'"
truncate -s 65M lab.state
refused ' larger than 64 MiB'
expect 1 "umbel: '$TMPDIR' is no regular file" umbel up --state .
mkfifo fifo
expect 1 "umbel: '$TMPDIR/fifo' is no regular file" umbel up --state fifo
expect 1 "umbel: cannot use 'none/file': No such file or directory" umbel up --state none/file
expect 1 "umbel: cannot use '': No such file or directory" umbel up --state ''
expect 1 'umbel: --state keeps what the embedded subnet manager knows, and --sm none starts without it' \
	umbel up --sm none --state new.state
expect 1 'umbel: --state keeps what the embedded subnet manager knows, *' \
	umbel up --set sm_embedded=0 --state new.state
[ ! -e new.state ] || complain 'a fabric that is not up has made a file'

# of many ports it is copied in slices
umbel up --fat-tree 3 --radix 18 --state large.state > /dev/null
all_are_there() { [ "$(grep -c '^lid ' large.state)" -ge 1458 ]; }
wait_until 'the LIDs of all 1,458 hosts are in the file' all_are_there
umbel down > /dev/null

# what cannot be written is told
mkdir gone
umbel up --state gone/lab.state > /dev/null
wait_until 'the file is there' grep -q ^lid gone/lab.state
wait_until 'the directory goes' rm -r gone
umbel sm event lid-change h2:1
expect 1 "*sm error: the state cannot be written to '$TMPDIR/gone/lab.state': No such file or directory
fabric 'default' is down" umbel down
mkdir gone
expect 125 "*the state cannot be written to '$TMPDIR/gone/lab.state': *" \
	umbel run --state gone/lab.state -- sh -c 'until rm -r gone; do :; done; umbel sm event lid-change h2:1'
[ -z "$(find "$UMBEL_RUNTIME_DIR" -mindepth 1)" ] || complain "something was left"
