#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# man.sh SOURCE DIR: the manual pages below DIR say what the program does: a page for each command and
# no other, with the options that its help and its parser know, whether they take a value too; the
# views of show and top, settings with their defaults, and which may change; the environment that the sources read. Their
# examples of topologies load. man has nothing to warn of.

. "${0%/*}/../system/lib.sh"

source=$1 pages=$2
export MANWIDTH=100 LC_ALL=C.UTF-8 MAN_KEEP_FORMATTING='' TERM=dumb

# text PAGE: as a user sees it, without emphasis.
text()
{
	man -P cat -l "$pages/man${1##*.}/$1" | col -bx
}

# section NAME: of a page's text on standard input
section()
{
	sed -n "/^$1\$/,/^[A-Z]/p"
}

# same WHAT LEFT RIGHT: two lists of words, in any order
same()
{
	local left right

	left=$(tr ' ' '\n' <<< "$2" | grep . | sort -u) right=$(tr ' ' '\n' <<< "$3" | grep . | sort -u)
	[ "$left" = "$right" ] || complain "$1 differ (<, >):"$'\n'"$(diff <(echo "$left") <(echo "$right"))"
}

# long_options: out of lines "  -n, --name NAME  text" on standard input: --name=, or --json where no
# value follows.
long_options()
{
	sed -nE 's/^ +(-[a-zA-Z], )?(--[a-z-]+)( [^ ].*|  .*)?$/\2\3/p' |
		sed -E 's/^(--[a-z-]+) [^ ].*/\1=/; s/ .*//'
}

# parsed COMMAND OPTION...: those of the options, likewise, that the command's parser knows as such: it
# complains of one without its value, and of one with a value that it does not take
parsed()
{
	local command=$1 option said

	shift
	for option; do
		if [[ $option == *= ]]; then
			said=$(umbel "$command" "${option%=}" 2>&1)
			[[ $said != *"option '${option%=}' needs a value"* ]] || echo "$option"
		else
			said=$(umbel "$command" "$option=1" 2>&1)
			[[ $said != *"option '$option' takes no value"* ]] || echo "$option"
		fi
	done
}

# ---- commands and their options

mapfile -t commands < <(sed -n 's/^\tX(\([a-z]*\)) *\\*$/\1/p' "$source/src/command/cli/main.c")
[ "${#commands[@]}" -ge 10 ] || complain "main.c has few commands: ${commands[*]}"
same "commands, with umbel-latency, and pages" "${commands[*]} latency" \
	"$(cd "$pages/man1" && printf '%s\n' umbel-*.1 | sed 's/umbel-\(.*\)[.]1/\1/')"
same "commands and those in umbel(1)" "${commands[*]}" \
	"$(text umbel.1 | section COMMANDS | sed -n 's/^ *umbel-\([a-z]*\)(1).*/\1/p')"
for command in "${commands[@]}"; do
	page=$(text "umbel-$command.1")
	options=$(section OPTIONS <<< "$page" | long_options)
	help=$(umbel "$command" --help)
	[ "$options" ] || complain "umbel-$command(1) has no options"
	same "options of umbel-$command(1) and of its help" "$options" "$(long_options <<< "$help")"
	# mpirun has a --help=1 of its own
	[ "$command" != mpirun ] || options=${options/--help/}
	# shellcheck disable=SC2086
	same "options of umbel-$command(1) and of its parser" "$options" "$(parsed "$command" $options)"
	same "short options of umbel-$command(1) and of its help" \
		"$(section OPTIONS <<< "$page" | grep -oE '^ +-[a-zA-Z],')" \
		"$(grep -oE '^ +-[a-zA-Z],' <<< "$help")"
	summary=$(umbel --help | sed -z 's,\n            , ,g' | sed -n "s/^  $command  *//p")
	[ -z "$summary" ] || [[ $page == *"umbel-$command — $summary"$'\n'* ]] ||
		complain "umbel-$command(1) does not have the summary '$summary'"
done
same "options of umbel(1)" "$(text umbel.1 | section OPTIONS | long_options)" '--help --version'

# ---- views

# those that are tables, and those that are not
views="$(sed -n 's/^\t{ "\([a-z]*\)", \(true\|false\), .*/\1/p' "$source/src/command/cli/show/views.c") routes drops"
shown=$(umbel show --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
same "the views of umbel show and its help" "$views group path" "$shown"
same "the views in umbel-show(1) and the help" "$shown" "$(sed -n 's/^\.It Cm \([a-z]*\).*/\1/p' "$pages/man1/umbel-show.1")"
same "the views of umbel show and its question" "$views" "$(umbel show 2>&1 | sed 's/.*what? //; s/;.*//; s/,//g; s/ or / /')"
for view in $views; do
	grep -q "^    \"$view\": {" "$source/docs/show.schema.json" || complain "show.schema.json has no '$view'"
done
same "the views of umbel top and its help" \
	"$(sed -n 's/^\t{ \.name = "\([a-z]*\)", .*/\1/p' "$source/src/command/cli/show/top_views.c")" \
	"$(umbel top --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')"
same "the views in umbel-top(1) and the help" "$(umbel top --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')" \
	"$(sed -n 's/^\.It Cm \([a-z]*\)$/\1/p' "$pages/man1/umbel-top.1")"

# ---- settings, environment

umbel up --hosts 1 > /dev/null
settings=$(text umbel.7 | section SETTINGS | grep -oE '^ {2,8}[a-z_]+=[^ ]+')
same "settings of umbel(7) and of a fabric" "$settings" \
	"$(umbel status --name default --json | sed -n '/"settings"/,/}/s/^ *"\(.*\)": "*\([^",{]\+\).*/\1=\2/p')"
for setting in $settings; do
	paragraph=$(text umbel.7 | sed -n "/^ *$setting/,/^\$/p" | tr -s ' \n' ' ')
	status=1
	[[ $paragraph != *' May change. ' ]] || status=0
	expect $status '*' umbel set "$setting"
done
umbel down > /dev/null

# SYSFS_PATH is rdma-core's own, PATH, SHELL and LD_PRELOAD every program's, and UMBEL_FUZZ_* are for tests.
same "variables of umbel(7) and those that the sources read" \
	"$(text umbel.7 | section ENVIRONMENT | grep -oE '^ {2,8}[A-Z_]+(, [A-Z_]+)*' | tr -d ,)" \
	"$(grep -rhoE 'getenv\("[A-Z_]+"\)|^#define VARIABLE "[A-Z_]+"' --include='*.c' "$source/src" "$source/programs" |
		grep -oE '"[A-Z_]+"' | tr -d '"' | grep -vE '^(SYSFS_PATH|PATH|SHELL|LD_PRELOAD|UMBEL_FUZZ_.*)$')"

# ---- topologies

awk '/^\.Bd -literal/ { n++; inside = 1; next } /^\.Ed/ { inside = 0 }
	inside { print > ("'"$TMPDIR"'/example." n) }' "$pages/man5/umbel-topology.5"
expect 0 '*
node1 *umbel_node1_0*umbel_node1_1*node2 *umbel_node2_0*' \
	umbel run --topology "$TMPDIR/example.1" -- umbel show hosts
expect 0 '*
a *b *c *' umbel run --topology "$TMPDIR/example.2" -- umbel show hosts

# ---- form

for page in "$pages"/man?/*; do
	warnings=$(man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 > /dev/null)
	[ -z "$warnings" ] || complain "man warns of ${page##*/}: $warnings"
	head -n 1 "$page" | grep -q 'SPDX-License-Identifier' || complain "${page##*/}: no SPDX line"
	# each page of ours that it refers to is there
	while read -r name section; do
		[ -e "$pages/man$section/$name.$section" ] || complain "${page##*/} refers to $name($section)"
	done < <(sed -nE 's/^\.(It )?Xr (umbel[a-z-]*) ([0-9]).*/\2 \3/p' "$page")
done
