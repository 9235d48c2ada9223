# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# pages.bash SCRIPT FOLDER: the shell in which a page's commands run (pages.sh). SCRIPT calls run() for each; they run in a
# checkout that is made in FOLDER. Before the next command, one in the background is waited for until it waits
# itself. A command that still runs at `umbel up` or `umbel down`, or at the end, is interrupted, as by
# Ctrl-C. Each `umbel up` begins anew.

set -u -m
# the test may be root's, and have no terminal
export TERM=${TERM:-xterm} OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

script=$1
page_failed=0
page_jobs=()
page_count=0
page_ran=()
declare -A page_is=() page_output=() page_done=()

page_complain()
{
	echo "FAIL: $*"
	page_failed=1
}

# page_checkout FOLDER: links, and what a command of a page writes to. Its build is the one under test.
page_checkout()
{
	local file

	mkdir -p "$1/build" && cd "$1" || exit 1
	for file in "$SOURCE"/*; do
		case ${file##*/} in
		build | examples | run) ;;
		*) ln -s "$file" . ;;
		esac
	done
	cp "$SOURCE/run" .
	mkdir examples
	cp "$SOURCE"/examples/*.* "$SOURCE"/examples/Makefile examples
	ln -s "$BUILD" build/release
}

# page_reader: what a reader is taken to have: a test, a program, choices of a weak fabric, and what ibnetdiscover has printed of
# a cluster. All switches of its two levels have 36 ports.
page_reader()
{
	printf '#!/bin/sh\nexec ibv_devices\n' > my-test
	printf '#!/bin/sh\nexec hostname\n' > a.out
	chmod +x my-test a.out
	echo 'h1 0 2 17 gather 3' > umbel-weak-17.txt
	! grep -q 'cluster[.]net' "$script" ||
		umbel run --fat-tree 2 --hosts 40 --host h1 -- ibnetdiscover | sed 's/"h\([0-9]* \)/"node\1/' > cluster.net
}

# page_qpn HOST [tail]: the number of its first connected queue pair, or its last
page_qpn()
{
	umbel show qps | awk -v host="$1" '$1 == host && $4 == "RC" { print $3 }' | "${2:-head}" -n 1
}

# page_stuck: h1 sends to a program on h3 that is stopped when it has received some: it posts no receives any more.
page_stuck()
{
	local receiver end=$((SECONDS + 20))

	umbel exec h3 -- ib_send_bw -D 100 -r 16 > /dev/null &
	receiver=$!
	page_steady $receiver
	umbel exec h1 -- ib_send_bw -D 100 -r 16 localhost > /dev/null &
	page_steady $!
	kill -STOP $receiver
	until umbel show qps | awk '$1 == "h1" && $4 == "RC" && $NF > 1 { waits = 1 } $1 == "h3" && $10 == 16 { full = 1 }
		END { exit !(waits && full) }'; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

# page_busy GROUP: whether a process of that group runs, or waits for a disk, and all of them have not yet had a fifth of a second
# of a processor, as those have that poll.
page_busy()
{
	cat /proc/[0-9]*/stat 2> /dev/null | sed 's/.*) //' | awk -v group="$1" '
		$3 == group { used += $12 + $13; if ($1 ~ /[RD]/) busy = 1 }
		END { exit !(busy && used < 20) }'
}

# page_steady GROUP: until it waits for something, has ended, or polls: so a server listens before its client comes.
page_steady()
{
	local calm=0 end=$((SECONDS + 20))

	while [ $calm -lt 3 ] && [ $SECONDS -lt $end ]; do
		calm=$((calm + 1))
		! page_busy "$1" || calm=0
		sleep 0.03
	done
}

# page_new_jobs: notes jobs that have been started since
page_new_jobs()
{
	local job

	jobs -p > "$TMPDIR/jobs"
	for job in $(cat "$TMPDIR/jobs") ${!:-}; do
		[ -z "${page_is[$job]-}" ] || continue
		page_is[$job]=$1
		page_output[$job]=$2
		page_jobs+=("$job")
		page_steady "$job"
	done
}

# page_settle: jobs that have ended have done so without an error; the others are ended
page_settle()
{
	local job status=0 runs

	for job in "${page_jobs[@]}"; do
		kill -CONT -- "-$job" 2> /dev/null # a page may have stopped it
	done
	jobs -pr > "$TMPDIR/runs"
	mapfile -t runs < "$TMPDIR/runs"
	for job in "${page_jobs[@]}"; do
		[[ " ${runs[*]} " != *" $job "* ]] || continue
		status=0
		wait "$job" 2> /dev/null || status=$?
		# by Ctrl-C, kill, or as nobody reads its output any more
		case $status in
		0 | 130 | 137 | 141 | 143) ;;
		*) page_complain "status $status: ${page_is[$job]}"$'\n'"$(cat "${page_output[$job]}")" ;;
		esac
	done
	for job in "${runs[@]}"; do
		kill -INT -- "-$job"
	done
	for job in "${runs[@]}"; do
		timeout 5 tail -f /dev/null --pid "$job" --sleep-interval=0.02
		kill -KILL -- "-$job" 2> /dev/null
		wait "$job" 2> /dev/null
	done
	page_jobs=()
}

# page_prepare PLACE KIND=WHAT...: runs what is to be run before, each once
page_prepare()
{
	local place=$1 what

	shift
	for what; do
		[[ $what == before=* && ! ${page_done[$what]-} ]] || continue
		page_done[$what]=yes
		eval "${what#*=}" > "$page_output_now" 2>&1 ||
			page_complain "$place: status $?: $what"$'\n'"$(cat "$page_output_now")"
		page_new_jobs "$what" "$page_output_now"
	done
}

# page_has PLACE FILE TEXT: the file has the lines of the text, in their order, but for numbers, blanks, and lines "...". A command
# in the background may print them later. The digits of a name, as in h1 or umbel_h1_0, are no number.
page_has()
{
	python3 - "$3" "$2" <<- 'END' || page_complain "$1: this is not what is printed"
		import re, sys, time

		def words(text):
		    return " ".join(re.sub(r"(?<![A-Za-z_0-9])(0x[0-9a-f]+|[0-9]+([.,][0-9]+)*)", "N", text).split())

		def missing(printed):
		    """The first line that is not there, or None."""
		    whole, at = words(printed), 0
		    for line in sys.argv[1].split("\n"):
		        if not line.strip() or line.strip() == "...":
		            continue
		        found = whole.find(words(line), at)
		        if found < 0:
		            return line
		        at = found + len(words(line))

		for _ in range(200):
		    printed = open(sys.argv[2]).read()
		    line = missing(printed)
		    if line is None:
		        sys.exit()
		    time.sleep(0.1)
		sys.exit(f"the page has: {line}\nit printed:   {printed}")
	END
}

# shows PLACE COMMAND TEXT KIND=WHAT...: what the last command printed that begins so has the lines of the text
shows()
{
	local i page_output_now=$TMPDIR/before

	page_prepare "$1" "${@:4}"
	for ((i = page_count; i > 0; i--)); do
		[[ ${page_ran[i]} != "$2"* ]] || break
	done
	if [ $i -gt 0 ]; then
		page_has "$1 ($2)" "$TMPDIR/output.$i" "$3"
	else
		page_complain "$1: no command before it begins with '$2'"
	fi
}

# page_words PICTURE: its text, a line each
page_words()
{
	grep -o '<text[^>]*>[^<]*' "$1" | sed 's/<[^>]*>//'
}

# picture PLACE FILE COMMAND: what the command prints is a picture with the same text as the file
picture()
{
	page_settle
	eval "$3" < /dev/null > "$TMPDIR/picture" 2> "$TMPDIR/before" || page_complain "$1: status $?: $3"$'\n'"$(cat "$TMPDIR/before")"
	page_words "$TMPDIR/picture" > "$TMPDIR/words"
	page_has "$2 is not what is drawn today ($3)" "$TMPDIR/words" "$(page_words "$2")"
}

# run PLACE COMMAND KIND=WHAT...: kinds are those of pages.txt
run()
{
	local page_what page_output_now page_wanted=0 page_got page_start='' page_times=1 page_command=$2 page_place=$1

	shift 2
	echo "$page_place: $page_command"
	[[ ! $page_command =~ umbel\ (up|down|daemon) ]] || page_settle
	page_output_now=$TMPDIR/output.$((++page_count))
	page_ran[page_count]=$page_command
	page_prepare "$page_place" "$@"
	for page_what; do
		case $page_what in
		start=) page_start=yes ;;
		again=) page_times=100 ;;
		status=*) page_wanted=${page_what#*=} ;;
		as=*) page_command=$(eval "sed -e \"${page_what#*=}\"" <<< "$page_command") || page_complain "$page_what" ;;
		esac
	done
	[[ ! $page_command =~ umbel\ (up|daemon) || $page_command =~ umbel\ up\ --name ]] || umbel down > /dev/null 2>&1
	while :; do
		page_got=0
		if [ "$page_start" ]; then
			eval "{ $page_command"$'\n'"} &" < /dev/null > "$page_output_now" 2>&1
		else
			eval "$page_command" < /dev/null > "$page_output_now" 2>&1 || page_got=$?
		fi
		[ "$page_got" -ne "$page_wanted" ] && [ $((--page_times)) -gt 0 ] || break
		sleep 0.2
	done
	[ "$page_got" -eq "$page_wanted" ] ||
		page_complain "$page_place: status $page_got: $page_command"$'\n'"$(cat "$page_output_now")"
	page_new_jobs "$page_place: $page_command" "$page_output_now"
}

rm -rf "$2"
mkdir "$2"
TMPDIR=$2
page_checkout "$2/umbel"
page_reader
. "$script"
page_settle
umbel down --all --yes --force > /dev/null
exit $page_failed
