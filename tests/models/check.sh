#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# check.sh NAME: spin goes through every state of a model and finds no error; and in each of its
# mutants, which lack one step or one ordering, it finds one. The model's opening comment says
# what is proven and what the mutants are.
#
# A model that was searched as it is now, by ./searched, is not searched again, unless $UMBEL_TEST_ALL is set
# (./run test --all). Its hash is of the model, which has the hashes of the functions that it models, and of this script;
# not of the files in which the functions are.
# UPDATE=yes ./run test --all -R models writes ./searched.

set -eu

name=$1
models=$(dirname "$(readlink -f "$0")")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail()
{
	echo "$name: $*" >&2
	exit 1
}

# search COMPILER SIZE MODEL FLAG...: all states of the model, or up to the first error. The table of states begins with
# 2^SIZE places. The report is in the file out.
search()
{
	local compiler=$1 size=$2 model=$3

	shift 3
	spin -a "$@" "$models/$model.pml" > out 2>&1 || { cat out; fail "spin refuses $model $*"; }
	$compiler -w -DSAFETY -DMEMLIM=1900 -o pan pan.c
	./pan -m100000 "-w$size" > out 2>&1 || true
}

# prove COMPILER MODEL FLAG...
prove()
{
	local compiler=$1 states

	shift
	search "$compiler" 24 "$@"
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored$/\1/p' out)
	if [ -z "$states" ] || ! grep -q 'errors: 0$' out ||
		grep -qE 'max search depth too small|Search not completed|out of memory|MEMLIM' out; then
		cat out
		fail "$*: an error, or not all of it was searched"
	fi
	echo "$*: $states states, $(sed -n 's/^ *\([0-9.]*\)\ttotal actual memory.*/\1/p' out) MB"
}

# proven MODEL FLAG...
proven()
{
	prove tcc "$@"
}

# proven_large MODEL FLAG...: the same where the search is long. gcc takes a second or two longer than tcc to compile a
# model, and its code is twice as fast.
proven_large()
{
	prove "${CC:-gcc} -O1" "$@"
}

# fails "NUMBER..." MODEL FLAG...: these mutants. Their searches end soon: to compile one takes gcc
# longer than to run it, and tcc a fortieth of that. $order: the other way round, among what a process can do
# (-DT_REVERSE) or among processes (-DREVERSE), where that comes to the error sooner.
fails()
{
	local mutants=$1 mutant

	shift
	for mutant in $mutants; do
		search "tcc ${order-}" 18 "$@" -DMUTANT="$mutant"
		grep -q 'errors: 1$' out || { cat out; fail "$*: mutant $mutant passes"; }
		echo "$* mutant $mutant: $(sed -n 's/^pan:1: //p' out)"
	done
}

# The file of the model: the longest beginning of its name that is one.
file=$name
until [ -e "$models/$file.pml" ]; do
	[ "$file" != "${file%_*}" ] || fail "no such model"
	file=${file%_*}
done
row="$name $(sed -E 's,^ \*  src/[^ ]+ ,,' "$models/$file.pml" "$models/check.sh" | sha256sum | cut -c 1-16)"
if [ -z "${UMBEL_TEST_ALL-}${UPDATE-}" ] && grep -qx "$row" "$models/searched"; then
	echo "$name: searched before, as it is now"
	exit 0
fi

case $name in
wire)
	proven wire
	proven wire -DFAULTS=4
	fails "1 2 3 4 5 6 7 8" wire
	;;
ring)
	proven_large ring
	order=-DREVERSE fails "1 2 3 4 5 6 7 8 9 12" ring -DMESSAGES_1=1
	;;
ring_reset)
	proven_large ring -DMESSAGES=1 -DRESETS=1
	order=-DREVERSE fails "10 11" ring -DMESSAGES_1=1 -DRESETS=1
	;;
ring_reuse)
	proven_large ring -DSIZE=1 -DRECEIVES=2 -DMESSAGES_1=1 -DLIVES=2
	fails "13 14 15 16" ring -DSIZE=1 -DRECEIVES=2 -DLIVES=2
	;;
ring_reuse_two)
	proven_large ring -DRECEIVES=2 -DMESSAGES=1 -DLIVES=2
	order=-DREVERSE fails 13 ring -DRECEIVES=2 -DMESSAGES=1 -DLIVES=2
	;;
wrap)
	proven wrap
	fails "1 2 3" wrap
	;;
record)
	proven record
	fails "1 2 3 4 5 6 7" record
	;;
payload)
	proven payload -DMESSAGES=4
	proven payload -DSLOTS=1
	proven payload -DMESSAGES=4 -DSMALL=2 -DDEATH=2
	fails "1 2 3 6 7" payload
	fails 5 payload -DSLOTS=1
	fails 4 payload -DSLOTS=1 -DMESSAGES=4 -DSMALL=1 -DDEATH=2
	;;
lease)
	proven lease
	fails "1 2 3 4 5 6" lease
	;;
arm)
	proven_large arm
	fails "1 2 3 4 5 6 7 8 9" arm
	;;
arm_direct)
	proven_large arm -DDIRECT=1
	fails "2 4 8" arm -DDIRECT=1
	;;
notify_destroy)
	proven notify_destroy
	fails "1 2 3 4 5" notify_destroy
	;;
notify)
	proven notify
	fails "1 2 3 4 5 6" notify
	;;
registration)
	proven_large registration
	order=-DREVERSE fails "1 2 3 4 5 6 7 12" registration
	;;
registration_help)
	proven registration -DHELP=1
	order=-DREVERSE fails "2 3 4 5 8 11 12 13" registration -DHELP=1
	;;
registration_reset)
	proven registration -DRESET=1
	order=-DREVERSE fails "1 3 4 9 10" registration -DRESET=1
	;;
registration_death)
	proven registration -DDEATH=1
	order=-DREVERSE fails "1 14 15" registration -DDEATH=1
	;;
adopt)
	proven adopt
	fails "1 2 3 4 5 6 7 8 9 10" adopt
	;;
adopt_fork)
	proven adopt_fork
	fails "1 2 3 4 5 6 7 8" adopt_fork
	;;
keys)
	proven_large keys
	proven keys -DWINDOW=1
	fails "1 2 3 4 5 6 7 8" keys
	fails 9 keys -DWINDOW=1
	;;
keys_death)
	proven_large keys_death
	order=-DT_REVERSE fails "1 3 4 6 7 8 9 10 11" keys_death
	order="-DREVERSE -DT_REVERSE" fails "2 5" keys_death
	;;
queue)
	proven queue
	fails "1 2 3 4 5 6 7 8" queue
	;;
posts)
	proven posts
	fails "1 2 3 4" posts
	;;
events)
	proven events
	fails "1 2 3 4 5 6" events
	;;
single)
	proven_large single -DRESETS=0
	proven_large single -DMESSAGES_1=1
	proven_large single -DSIZE=1 -DRECEIVES=2 -DMESSAGES_1=1 -DRESETS=0 -DLIVES=2
	fails "1 2 3 5 6 7 8 9" single -DMESSAGES_1=1
	fails 4 single -DSIZE=1 -DRECEIVES=2 -DRESETS=0 -DLIVES=2
	;;
place)
	proven place
	fails "1 2 3 4 5 6" place
	;;
srq)
	proven_large srq
	fails "1 2 3 4 5 6 7 8 9 10 11 12" srq -DRECEIVES=2
	;;
srq_back)
	proven srq_back
	proven_large srq_back -DDEATH=1
	proven_large srq_back -DTAKEN=1
	fails "1 2 3 7" srq_back
	fails "5 6 8" srq_back -DDEATH=1
	fails 4 srq_back -DTAKEN=1
	;;
roce_turn)
	proven_large roce_turn
	fails "1 2 3 4" roce_turn
	;;
*)
	fail "no such model"
	;;
esac

[ -z "${UPDATE-}" ] || (
	flock 9
	{ grep -v "^$name " "$models/searched" || true; echo "$row"; } | sort > searched
	cat searched > "$models/searched"
) 9>> "$models/searched"
