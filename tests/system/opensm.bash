# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the opensm_*.sh share: Debian's OpenSM, unmodified, on hosts of the default fabric. It
# asks its master often, so that nobody waits long.

. "${BASH_SOURCE[0]%/*}/lib.sh"

# AddressSanitizer reads a message again after sendmsg() has sent it; another thread of OpenSM
# may have its response by then, and have freed it.
export ASAN_OPTIONS=detect_leaks=0:intercept_send=0

opensm_conf=()	# more lines of its configuration

# opensm NAME HOST OPTION...: starts it in the background. Its files are in a directory of its own.
opensm()
{
	local name=$1 host=$2 dir=$TMPDIR/opensm-$1
	shift 2
	mkdir -p "$dir"
	printf '%s\n' 'sminfo_polling_timeout 200' 'polling_retry_number 2' 'sweep_interval 1' \
		${opensm_conf[@]+"${opensm_conf[@]}"} \
		> "$dir/conf"
	OSM_CACHE_DIR=$dir OSM_TMP_DIR=$dir start "$name" "$host" \
		opensm -F "$dir/conf" -f "$dir/log" "$@"
}

# all_ports STATE: whether every port with a cable is in this state.
all_ports()
{
	umbel show topology | awk -v state="$1" 'NR > 1 && $5 != state { exit 1 }'
}

# master_is GUID: whether the ports of h2 know this port's SM as their master.
master_is()
{
	[[ $(umbel exec h2 -- sminfo 2>&1) == *"sm guid 0x$1,"*SMINFO_MASTER* ]]
}

# embedded STATE: whether the embedded subnet manager is in it.
embedded()
{
	[[ $(umbel status --name default) == *"embedded subnet manager: $1, at "* ]]
}

# The GUID of the port of a host, as the tools write it.
guid()
{
	printf '2756d0000000%x01' "$1"
}

# A torus of 5 x 5 switches with a host each, in ibsim's form. Ports 2 to 5 lead east, west, north
# and south.
torus()
{
	local x y

	for y in 0 1 2 3 4; do
		for x in 0 1 2 3 4; do
			printf 'Hca 1 "h%d"\n[1] "s%d%d"[1]\n\n' $((5 * y + x + 1)) $x $y
			printf 'Switch 8 "s%d%d"\n' $x $y
			printf '[1] "h%d"[1]\n' $((5 * y + x + 1))
			printf '[2] "s%d%d"[3]\n' $(((x + 1) % 5)) $y
			printf '[3] "s%d%d"[2]\n' $(((x + 4) % 5)) $y
			printf '[4] "s%d%d"[5]\n' $x $(((y + 1) % 5))
			printf '[5] "s%d%d"[4]\n\n' $x $(((y + 4) % 5))
		done
	done
}
