#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rxe.sh [ROUNDS]: Umbel beside the kernel's rdma_rxe, in one virtual machine with two processors: Debian's perftest
# between two programs, in turns by rdma_rxe, by Umbel's memory as programs of one machine meet, and by RoCEv2 between
# two network namespaces. Prints the medians of so many rounds (3), each of which takes two minutes, as the machine's
# processors are emulated; so only the ratios say something. After ./run build; what tests/machine needs is installed by
# ./run test.

set -u
here=$(dirname "$(readlink -f "$0")")
build=$here/../build

if [ ! "${UMBEL_TEST_LINUX:-}" ]; then
	"$here/../tests/machine/kernel.sh" "$build/linux" || exit
	UMBEL_TEST_LINUX=$(readlink -f "$build/linux") exec "$here/../tests/in-sandbox.sh" \
		"$(readlink -f "$build/release/bin/umbel")" "$(readlink -f "$build/release/lib/umbel")" \
		"$(readlink -f "$0")" "$@"
fi

. "$here/../tests/roce/lab.sh"
. "$here/../tests/machine/lib.sh"

# shellcheck disable=SC2034 # of tests/machine
machine_options=(-smp 2 -m 4096)
lab_up 1
machine_up v11
for ((round = 1; round <= ${1:-3}; round++)); do
	echo "round $round" >&2
	machine_run "round$round" v11 "$here/rxe_guest.sh" "$UMBEL" "$here/wire.sh" ||
		{ cat "$TMPDIR/v11/round$round.out" >&2; exit 1; }
done
cat "$TMPDIR"/v11/round*.out | sort -k 3,3 -k 1,1 -k 2,2g | awk '
	NF == 3 { ns[$3, $1, ++n[$3, $1]] = $2 }
	NF == 3 && $3 != test[tests] { test[++tests] = $3 }
	function median(name, over) { return ns[name, over, int((n[name, over] + 1) / 2)] }
	END {
		printf "%-24s %12s %20s %20s\n", "us a message", "rdma_rxe", "Umbel, by memory", "Umbel, by RoCEv2"
		for (t = 1; t <= tests; t++) {
			rxe = median(test[t], "rxe")
			printf "%-24s %12.2f", test[t], rxe / 1000
			for (i = 1; i <= 2; i++) {
				ours = median(test[t], i == 1 ? "memory" : "wire")
				printf " %12.2f (%5.2fx)", ours / 1000, ours ? rxe / ours : 0
			}
			print ""
		}
	}'
