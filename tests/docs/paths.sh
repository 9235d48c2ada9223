#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the documents name must be there: files and folders in backticks or links, and functions,
# written `name()`, in the sources; a function that is named with its file, in that file
# (functions.pl). Run by ctest from the repository's root.

set -u

status=0

complain()
{
	echo "$1: names $2, which is not there"
	status=1
}

documents=(README.md ARCHITECTURE.md CONTRIBUTING.md docs/*.md programs/*/*.md)

for document in "${documents[@]}"; do
	# `src/x/y.c`, `src/x`, (docs/z.md); patterns such as x_test.c and src/*/*.h name no file
	while read -r path; do
		[ -e "$path" ] || complain "$document" "$path"
	done < <(grep -oE '[`(](src|programs|docs|tests|tools|bench|examples)/[A-Za-z0-9_./-]+[`)]' "$document" |
		tr -d '`()' | sort -u)
	while read -r path; do
		[ -e "$(dirname "$document")/$path" ] || complain "$document" "$path"
	done < <(grep -oE '\]\([^)#:]+[)#]' "$document" | tr -d '](#)' | sort -u)
	while read -r name; do
		grep -rqw --include='*.[ch]' "$name" src programs /usr/include/infiniband /usr/include/rdma ||
			complain "$document" "$name()"
	done < <(grep -oE '`[a-z][a-z0-9_]+\(\)`' "$document" | tr -d '`()' | sort -u)
done
# the list of folders: each lies in the last one that is two columns further left
while read -r path; do
	[ -d "$path" ] || complain ARCHITECTURE.md "$path"
done < <(awk '/^## The folders/ { inside = 1; next } /^## / { inside = 0 }
	inside && match($0, /^    ( *)[a-z\/]+\/ /) {
		match($0, /[a-z]/)
		folder[RSTART] = (RSTART > 5 ? folder[RSTART - 2] : "") $1
		print folder[RSTART]
	}' ARCHITECTURE.md)
tests/docs/functions.pl "${documents[@]}" || status=1
# names that only the owner of the repository knows, and the version
tools/owner.py --check || status=1
version=$(sed -n 's/^project(umbel VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
for said in README.md:"This is version $version " CHANGELOG.md:"## $version," debian/changelog:"umbel ($version)"; do
	grep -qF "${said#*:}" "${said%%:*}" || { echo "${said%%:*}: does not say '${said#*:}'"; status=1; }
done
! grep -noE 'umbel[-_][0-9]+[.][0-9]+[.][0-9]+' docs/ci.md | grep -v "[-_]$version\$" || { echo 'docs/ci.md: another version'; status=1; }
exit $status
