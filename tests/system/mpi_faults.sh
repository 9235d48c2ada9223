#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# MPI over a fabric that fails: a link that comes back delays a program, which then ends with the right results;
# one that does not ends it, with a word of why; and so does a rank that is killed.

. "${0%/*}/lib.sh"
. "${0%/*}/../mpi/lib.bash"

umbel up --hosts 4 > /dev/null

# noted.sh FILE COMMAND...: the command as a rank, and how it ended into the file. MPICH's launcher forgets that
# if two ranks fail at once, and says and returns nothing (its issue 7057).
cat > "$TMPDIR/noted.sh" <<'END'
file=$1
shift
bash "${0%/*}/rank.sh" "$@"
status=$?
echo "status $status" >> "$file"
exit $status
END

# start_mpi NAME MPI RANKS: collectives, until there is a file of that name; once they have been done.
start_mpi()
{
	name=$1 mpi=$2
	launch "$name" run_mpi "$mpi" "$3" bash "$TMPDIR/noted.sh" "$TMPDIR/status-$name" \
		"$TMPDIR/collectives.$mpi" "$TMPDIR/end-$name"
	wait_said "$name" '[0-9]* times'
}

# lost: datagrams that their port or a switch could not send on.
lost()
{
	umbel show counters --json | awk '/"(xmit_discards|relay_errors)":/ { n += $2 } END { print n + 0 }'
}

more_lost()
{
	[ "$(lost)" -gt "$1" ]
}

times()
{
	grep -c ' times$' "$TMPDIR/$name.out"
}

# ranks NAME: the PIDs of its ranks that run.
ranks()
{
	pgrep -f "^$TMPDIR/collectives.* $TMPDIR/end-$1\$"
}

# expect_failed WHY: it ends, and all its ranks, with a word or a status that says why.
expect_failed()
{
	wait_until "$name ends" gone "${pid[$name]}"
	ended["$name"]=0
	wait "${pid[$name]}" 2> /dev/null || ended["$name"]=$?
	[ "${ended[$name]}" -ne 0 ] || grep -q 'status [1-9]' "$TMPDIR/status-$name" ||
		complain "$name ends well"
	grep -qi "$1" "$TMPDIR/$name.out" "$TMPDIR/status-$name" || complain "$name does not say why"
	wait_until "no rank of $name is left" not ranks "$name" > /dev/null
}

# ---- a link that comes back
for how in 'ud_v,self openmpi' 'rc_v,self openmpi mpich'; do
	read -ra word <<< "$how"
	export UCX_TLS=${word[0]}
	for mpi in "${word[@]:1}"; do
		start_mpi "returns-$mpi-$UCX_TLS" $mpi 2 || continue
		before=$(lost)
		umbel link down h2:1
		# UD sends again in vain, h2's rank or the other one; RC's requests wait in their queue
		[[ $UCX_TLS = rc* ]] || wait_until 'something is lost' more_lost "$before"
		umbel link up h2:1
		wait_said "$name" '[0-9]* times' $(($(times) + 2))
		: > "$TMPDIR/end-$name"
		wait_ended "$name" 0
		expect_said "$name" '2 ranks, 0 wrong'
	done
done

# ---- a link that does not: RC gives up after its retries
export UCX_RC_VERBS_TIMEOUT=20ms UCX_RC_VERBS_RETRY_COUNT=3
for mpi in openmpi mpich; do
	start_mpi "fails-$mpi" $mpi 2 || continue
	umbel link down h2:1
	expect_failed 'retry\|timed\? *out\|unreachable'
	umbel link up h2:1
done

# ---- a rank that is killed: its peers do not give up before it is known
unset UCX_RC_VERBS_TIMEOUT UCX_RC_VERBS_RETRY_COUNT
for mpi in openmpi mpich; do
	start_mpi "killed-$mpi" $mpi 3 || continue
	kill -9 "$(ranks "$name" | sed -n 2p)"
	expect_failed 'signal 9\|exit code: 9\|status 137'
done

# nothing of them is left on the fabric
no_queue_pairs()
{
	[ "$(field qps default)" -eq 0 ]
}
wait_until 'all queue pairs are gone' no_queue_pairs
