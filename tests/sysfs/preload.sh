#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What answers for sysfs is preloaded into programs. It gets along with others that stand before the
# C library, whichever comes first: the runtimes of sanitizers, fakeroot.

. "${0%/*}/../system/lib.sh"

state=/sys/class/infiniband/umbel_h1_0/ports/1/state
cat > "$TMPDIR/look.c" <<'END'
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
	FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;
	DIR *dir = opendir("/dev/infiniband");
	char text[64] = "";
	struct stat st;
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (!f || !fgets(text, sizeof(text), f) || stat("/dev/infiniband/uverbs0", &st) || !S_ISCHR(st.st_mode))
		return 1;
	printf("%d %s", n, text);
	return fclose(f) || closedir(dir);
}
END

umbel up --hosts 1 > /dev/null
for sanitizer in address thread undefined; do
	gcc -fsanitize=$sanitizer -o "$TMPDIR/look" "$TMPDIR/look.c" || exit 1
	expect 0 '6 4: ACTIVE' umbel exec h1 -- "$TMPDIR/look" $state
done
# an overflow is still found
cat > "$TMPDIR/overflow.c" <<'END'
#include <stdlib.h>
int main(int argc, char **argv) { char *p = malloc(8); return argv[argc - 1][0] + p[8]; }
END
gcc -fsanitize=address -o "$TMPDIR/overflow" "$TMPDIR/overflow.c" || exit 1
expect 1 '*heap-buffer-overflow*' umbel exec h1 -- "$TMPDIR/overflow"
expect 1 '*ASan runtime does not come first*' \
	env ASAN_OPTIONS=verify_asan_link_order=1 umbel exec h1 -- "$TMPDIR/overflow"

expect 0 '4: ACTIVE' umbel exec h1 -- fakeroot cat $state
expect 0 '4: ACTIVE' fakeroot umbel exec h1 -- cat $state
expect 0 '231:192 0' umbel exec h1 -- fakeroot stat -c '%Hr:%Lr %u' /dev/infiniband/uverbs0
