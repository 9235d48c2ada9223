#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The property of multicast (multicast.c) on one fabric after the other, with the embedded subnet
# manager or with OpenSM: multicast.sh PROGRAM embedded|opensm FABRICS STEPS
#
# The embedded one routes them by its engines in turn; with minhop links may wait for each other in
# circles, so that is not looked at then.
#
# UMBEL_PROPERTY_FABRICS and UMBEL_PROPERTY_STEPS say how many instead, UMBEL_PROPERTY_SEED with
# which fabric to begin: a failure names its seed.

. "${0%/*}/../system/opensm.bash"

program=$1
manager=$2
fabrics=${UMBEL_PROPERTY_FABRICS:-$3}
steps=${UMBEL_PROPERTY_STEPS:-$4}
first=${UMBEL_PROPERTY_SEED:-1}

engines=(minhop updn ftree dfsssp)

# walk SEED
walk()
{
	local seed=$1 routing=${engines[$1 % 4]}

	[ "$manager" = embedded ] || routing=minhop
	unset UMBEL_PROPERTY_CIRCLES
	[ $routing != minhop ] || export UMBEL_PROPERTY_CIRCLES=1
	"$program" topology "$seed" > "$TMPDIR/topology"
	if [ "$manager" = opensm ]; then
		umbel up --topology "$TMPDIR/topology" --sm none > /dev/null
		rm -rf "$TMPDIR/opensm-master"	# it would remember another fabric's LIDs
		opensm master h1
		start walk all "$program" walk "$seed" "$steps" settling
	else
		umbel up --topology "$TMPDIR/topology" --set routing=$routing > /dev/null
		start walk all "$program" walk "$seed" "$steps"
	fi
	ended[walk]=0
	wait "${pid[walk]}" || ended[walk]=$?
	[ "${ended[walk]}" -eq 0 ] || {
		complain "with the $manager subnet manager; again: UMBEL_PROPERTY_SEED=$seed"
		cat "$TMPDIR/topology" >&2
	}
	if [ "$manager" = opensm ]; then
		kill "${pid[master]}"
		wait "${pid[master]}" 2> /dev/null
		ended[master]=0
	fi
	umbel down > /dev/null
}

for ((seed = first; seed < first + fabrics && !failed; seed++)); do
	walk "$seed"
	tail -n 1 "$TMPDIR/walk.out"
done
