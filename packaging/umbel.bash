# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Completion of umbel's command lines for bash, loaded by bash-completion. Commands, options and what
# they take are what the program's help says; hosts, nodes and fabrics are those that are up. Only the
# keys of settings, the words of faults' rules and the statuses of completions are listed here, as the help does
# not have them so; tests/docs/completion.sh compares them with what the program takes.

_umbel_settings='max_mcast_grp max_mcast_qp_attach max_total_mcast_qp_attach mtu max_qp_wr max_sge max_cqe
	exact_sizes arm_fires
	sa_send_only keep_groups block_loopback_host mft_delay_ms mft_capacity sm_embedded sm_priority sm_poll_ms routing
	routing_lanes lmc mlid_sharing roce_attach_joins roce_segments roce_ecn roce_adp_retrans
	roce_selective_repeat roce_rxe_flush host_cpus adopt checked weak weak_seed ud_wait_us ipoib_mode'

_umbel_statuses='SUCCESS LOC_LEN LOC_QP_OP LOC_EEC_OP LOC_PROT WR_FLUSH MW_BIND BAD_RESP LOC_ACCESS REM_INV_REQ REM_ACCESS
	REM_OP RETRY_EXC RNR_RETRY_EXC LOC_RDD_VIOL REM_INV_RD_REQ REM_ABORT INV_EECN INV_EEC_STATE FATAL RESP_TIMEOUT GENERAL TM
	TM_RNDV_INCOMPLETE'
_umbel_rule='qp= host= to= link= group= opcode= mad= psn= round= nth= count= chance= seed= after= until= every= loss= delay=
	drop corrupt duplicate reorder ecn nak= post= receive= wc= register= made= wr_id= width= speed= errors= recoveries= flap='

# _umbel_ask ARGUMENT...: what the umbel of the command line says. It does not wait longer than a second
# for a daemon that is stopped; a test sets another limit.
_umbel_ask()
{
	timeout "${_umbel_seconds:-1}" "${words[0]/#\~\//$HOME/}" "$@" 2> /dev/null
}

_umbel_commands()
{
	_umbel_ask --help | sed -nE 's/^  ([a-z]+)  +[a-z].*/\1/p'
	echo daemon
}

# The options of a command, out of its help; with --name= for one that takes a value.
_umbel_options()
{
	_umbel_ask "$1" --help |
		sed -nE 's/^ +((-[a-zA-Z]), )?(--[a-z-]+)(\[=[A-Za-z]+\])?( [^ ].*|  .*)?$/\2 \3\5/p' |
		sed -E 's/^(-[a-zA-Z])? (--[a-z-]+) [^ ].*/\1= \2=/; s/^(-[a-zA-Z])? (--[a-z-]+).*/\1 \2/; s/^=? //'
}

# The words that the usage line of a command allows: "down|up" of "umbel link [OPTION]... down|up ...".
_umbel_verbs()
{
	_umbel_ask "$1" --help | sed -nE 's/^(Usage:|      ) umbel [a-z]+ \[OPTION\]\.\.\. ([a-z|]+).*/\2/p' | tr '|' ' '
}

# Words that the help of a command lists, one a line: "  topology   nodes, ports and ...".
_umbel_listed()
{
	_umbel_ask "$1" --help | sed -nE 's/^  ([a-z][a-z-]*)( [A-Z:]+)*  +[^ ].*/\1/p'
}

_umbel_hosts()
{
	_umbel_ask show ${fabric:+--name "$fabric"} hosts | awk 'NR > 1 { print $1 }' | uniq
}

_umbel_switches()
{
	_umbel_ask show ${fabric:+--name "$fabric"} topology |
		awk 'NR > 1 && $2 == "switch" { print $1 }' | uniq
}

_umbel_groups()
{
	_umbel_ask show ${fabric:+--name "$fabric"} groups | sed -n 's/^\(ff[0-9a-f:]*\)$/\1/p'
}

# NODE:PORT of a type: switch, or host for those of HCAs; all without one
_umbel_ports()
{
	_umbel_ask show ${fabric:+--name "$fabric"} topology |
		awk -v type="$1" 'NR > 1 && (type == "" || $2 == type) { print $1 ":" $4 }'
}

# HOST:PORT
_umbel_host_ports()
{
	_umbel_ask show ${fabric:+--name "$fabric"} hosts --json |
		awk -F '"' '/^    "name"/ { host = $4 } /"port":/ { gsub(/[^0-9]/, "", $3); print host ":" $3 }' | uniq
}

# Words of a rule: those that take a value end in "=", and no blank follows.
_umbel_offer_rule()
{
	_umbel_offer "$_umbel_rule"
	[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} != *= ]] || compopt -o nospace
}

# _umbel_offer WORDS [APPENDED]: those that begin as the word does
_umbel_offer()
{
	mapfile -t COMPREPLY < <(compgen -W "$1" ${2:+-S "$2"} -- "$cur")
	[ ! "${2-}" ] || compopt -o nospace
	__ltrim_colon_completions "$cur"
}

_umbel_files()
{
	compopt -o filenames
	mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

# The value of an option.
_umbel_value()
{
	case $1 in
	-n | --name) _umbel_offer "$(_umbel_ask status | awk 'NR > 1 { print $1 }')" ;;
	--topology | --lfts | --mfts | --paths | --partitions | --state | --faults | --junit | --suppress | -o | --output | --svg | --png | --dot)
		_umbel_files
		;;
	--from | --to) _umbel_offer "$(_umbel_hosts)" ;;
	--host) [ "$command" != explain ] || _umbel_offer "$(_umbel_hosts)" ;;
	--card) _umbel_offer 'connectx-6 e810 rxe' ;;
	--op) _umbel_offer 'write read atomic' ;;
	--except) _umbel_offer "$(_umbel_listed check)" ;;
	--group) _umbel_offer "$(_umbel_groups)" ;;
	--class) _umbel_offer 'smp sa cm perf' ;;
	--sm) _umbel_offer 'embedded none' ;;
	--net) _umbel_offer host ;;
	--fat-tree) _umbel_offer '2 3' ;;
	--roce) _umbel_offer "$(cd /sys/class/net && echo *)" ;;
	--set) _umbel_offer "$_umbel_settings" = ;;
	esac
}

# A word of a command that is no option: number $1, after those in $2 and $3.
_umbel_word()
{
	case $command$1 in
	help1) _umbel_offer "$(_umbel_commands)" ;;
	exec1) _umbel_offer "$(_umbel_hosts) --" ;;
	capture1) _umbel_offer "$(_umbel_hosts) $(_umbel_switches)" ;;
	explain1) _umbel_offer 'wc rule' ;;
	explain2)
		[ "$2" != wc ] || _umbel_offer "$_umbel_statuses"
		[ "$2" != rule ] || _umbel_offer "$(umbel explain rule 2> /dev/null | awk '{ print $1 }')"
		;;
	ladder1) _umbel_files ;;
	env1 | rsh1) _umbel_offer "$(_umbel_hosts)" ;;
	exec2 | run1) _umbel_offer -- ;;
	show1 | simulate1 | top1) _umbel_offer "$(_umbel_listed "$command")" ;;
	simulate2) [ "$2" != file ] || _umbel_files ;;
	set*) _umbel_offer "$_umbel_settings" = ;;
	link1 | fault1 | switch1 | sm1) _umbel_offer "$(_umbel_verbs "$command")" ;;
	link2) _umbel_offer "$(_umbel_ports '') $(_umbel_host_ports)" ;;
	fault*) [ "$2" != add ] || _umbel_offer_rule ;;
	show2)
		[ "$2" != routes ] || _umbel_offer "$(_umbel_switches)"
		[ "$2" != path ] || _umbel_offer "$(_umbel_hosts) $(_umbel_switches)"
		[ "$2" != group ] || _umbel_offer "$(_umbel_groups)"
		;;
	show3) [ "$2" != path ] || _umbel_offer "$(_umbel_hosts) $(_umbel_switches)" ;;
	router1 | router2) _umbel_offer "$(_umbel_ask status | awk 'NR > 1 { print $1 }')" ;;
	switch2) _umbel_offer "$(_umbel_switches)" ;;
	sm2)
		[ "$2" != partitions ] || _umbel_files
		[ "$2" != event ] || _umbel_offer "$(_umbel_listed sm)"
		;;
	sm3) [ "$2" != event ] || _umbel_offer "$(_umbel_ports host)" ;;
	esac
}

_umbel()
{
	local cur prev words cword command options fabric='' i n=0 given=()

	_get_comp_words_by_ref -n := cur prev words cword
	COMPREPLY=()
	if [ "$cword" -eq 1 ]; then
		_umbel_offer "$(_umbel_commands) help --help --version"
		return
	fi
	command=${words[1]}
	options=$(_umbel_options "$command")
	for ((i = 2; i < cword; i++)); do
		if [ "${words[i]}" = -- ]; then
			_command_offset $((i + 1))
			return
		elif [[ ${words[i]} == --name=* ]]; then
			fabric=${words[i]#*=}
		elif [[ ${words[i]} != -* ]]; then
			given[++n]=${words[i]}
		elif [[ $'\n'${options// /$'\n'}$'\n' == *$'\n'"${words[i]}="$'\n'* ]]; then
			i=$((i + 1))
			[ "$i" -lt "$cword" ] || { _umbel_value "$prev"; return; }
			[[ ${words[i - 1]} != -n && ${words[i - 1]} != --name ]] || fabric=${words[i]}
		fi
	done
	if [[ $cur == --*=* ]]; then
		prev=${cur%%=*} cur=${cur#*=}
		_umbel_value "$prev"
	elif [[ $cur == -* ]]; then
		_umbel_offer "${options//=/}"
	else
		_umbel_word $((n + 1)) "${given[1]-}" "${given[2]-}"
	fi
}

complete -F _umbel umbel
