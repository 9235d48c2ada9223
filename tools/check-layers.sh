#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Each folder in the wings of src/ and in programs/ may include only itself and the folders under it, and so may each room
# of a folder, but for the rooms' unit tests: see ARCHITECTURE.md. A file is included by its folder's name.
# Called by tools/check-static.sh. Prints each include that is not allowed, as FILE:LINE.

set -eu -o pipefail

cd "$(dirname "$(readlink -f "$0")")/.."

find src programs \( -name '*.[ch]' -o -name '*.def' \) ! -path '*/tests/*' -print0 | sort -z | xargs -0 awk '
BEGIN {
	n = split("ibsim ipoib litmus " \
		  "cli simulate " \
		  "daemon cm subnet fabric hosts " \
		  "sysfs sockets api checked hca " \
		  "netdev control shm wire check base", order)
	for (i = 1; i <= n; i++)
		for (j = i; j <= n; j++)
			may[order[i], order[j]] = 1
	# The shared libraries run in the programs: nothing of the daemon in them.
	restrict("api", "api checked hca control shm wire base")
	# The watcher of a program knows its requests and nothing of how they are carried out.
	restrict("checked", "checked hca base")
	restrict("sysfs", "sysfs control shm wire base")
	# Of librdmacm it is on the public interface, and on what that has for it.
	restrict("sockets", "sockets api base")
	# Programs on the public libraries.
	restrict("ipoib", "ipoib netdev wire base")
	restrict("ibsim", "ibsim wire base")
	restrict("litmus", "litmus")
	# Sockets and netlink know nothing of fabrics.
	restrict("netdev", "netdev wire base")
	# Namespaces know nothing of fabrics.
	restrict("hosts", "hosts netdev control wire base")
	# The daemon uses all folders but those whose symbols programs see.
	delete may["daemon", "api"]
	# rdma_cm asks the subnet manager by MADs: it may be another one than ours.
	restrict("cm", "cm fabric control shm wire base")
	restrict("subnet", "subnet fabric shm wire check base")
	# The fabric is without processes.
	restrict("fabric", "fabric control shm wire base")
	# A simulation is the fabric and its subnet manager alone.
	restrict("simulate", "simulate subnet fabric wire base")
	# Tables are judged without knowing who wrote them.
	restrict("check", "check base")
	delete may["daemon", "check"]
	# A command talks to the daemon, or becomes it, or simulates.
	restrict("cli", "cli simulate check hosts sysfs control checked wire base")
	rooms("hca", "transport registration link queue memory process")
	rooms("fabric", "plan agents forwarding model")
	rooms("cli", "show simulate explain run picture record fabric check base")
	rooms("daemon", "top show router detour network umad subnet clients core")
}
# The rooms of a folder, from the top to the bottom.
function rooms(folder, list,    i, k, name) {
	k = split(list, name)
	for (i = 1; i <= k; i++)
		level[folder, name[i]] = k - i + 1
}
function restrict(folder, list,    i, allowed, k) {
	for (i = 1; i <= n; i++)
		delete may[folder, order[i]]
	k = split(list, allowed)
	for (i = 1; i <= k; i++)
		may[folder, allowed[i]] = 1
}
match($0, /^[ \t]*#[ \t]*include[ \t]*"[^"]+"/) {
	name = FILENAME
	sub(/^(src\/[^\/]*|programs)\//, "", name)
	split(name, path, "/")
	split($0, quoted, "\"")
	if (split(quoted[2], part, "/") < 2) {
		printf "%s:%d: write \"FOLDER/%s\"\n", FILENAME, FNR, quoted[2]
		bad = 1
	} else if (!((path[1], part[1]) in may) &&
		   !(path[1] == "cli" && quoted[2] ~ "^(daemon/core/daemon|fabric/plan/shape)[.]h$")) {
		printf "%s:%d: %s may not include \"%s\"\n", FILENAME, FNR, path[1], quoted[2]
		bad = 1
	} else if (path[1] == part[1] && FILENAME !~ /_test[.]c$/ && (path[1], path[2]) in level &&
		   level[path[1], path[2]] < level[part[1], part[2]]) {
		printf "%s:%d: %s/%s may not include \"%s\"\n", FILENAME, FNR, path[1], path[2],
			quoted[2]
		bad = 1
	}
}
END { exit bad }
'
