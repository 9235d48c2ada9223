#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Checked programs that need what a card has not, each beside a twin that the card serves, by the file of the E810 that
# is installed; and that a card with more says nothing.

# cards.sh PROGRAM GID_INDEX: checked.mistakes and checked.gid_index.

. "${0%/*}/../system/lib.sh"
. "${0%/*}/twins.sh"

export UMBEL_CHECKED_CARD=e810
for name in deep-queue many-ranges long-inline; do
	twins $name 'card-limit ' umbel run --hosts 2 --
done
for name in unreliable atomic shared-receives on-demand device-memory wr-api timestamps; do
	twins $name 'card-lacks ' umbel run --hosts 2 --
done

expect 0 '*Intel E810 (irdma, RoCEv2) has max_inline_data 101 (wanted: 102)*' \
	umbel run --hosts 2 -- "$1" long-inline wrong

UMBEL_CHECKED_CARD=connectx-6
for name in deep-queue unreliable atomic shared-receives on-demand device-memory wr-api timestamps; do
	twins $name '' umbel run --hosts 2 --
done

# a file beside the known ones, which has no RC queue pairs
cards=${UMBEL%/bin/*}/share/umbel/cards
sed 's/^qp_types .*/qp_types UC/' "$cards/rxe" > mine
UMBEL_CHECKED_CARD=$PWD/mine
expect 0 '*Soft-RoCE (rxe, Linux 6.1) has no RC queue pairs*' umbel run --hosts 2 -- "$1" atomic right
UMBEL_CHECKED_CARD=connectx-99
expect 0 "*not checked: the card: there is no card 'connectx-99'; known are *" \
	umbel run --hosts 2 -- "$1" atomic right

unset UMBEL_CHECKED_CARD
umbel up --roce-hosts 1 > /dev/null || exit 1
for rule in gid-index-assumed port-assumed; do
	what=${rule%%-*}
	expect 0 '' umbel exec r1 -- "$2" "$what" right
	expect 0 "*\\[$rule\\]*" umbel exec r1 -- "$2" "$what" wrong
done
