/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files as a whole: see file.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

#define FIRST_ROOM 16384

int base_read_all(int fd, size_t most, char **text, size_t *bytes)
{
	size_t room = FIRST_ROOM, n = 0;
	char *s = malloc(room), *grown = s;
	ssize_t got = 1;

	while (grown && got && n <= most) {
		got = read(fd, s + n, room - n - 1);
		if (got < 0 && errno != EINTR)
			break;
		n += got > 0 ? (size_t)got : 0;
		if (room - n > 1)
			continue;
		grown = realloc(s, room *= 2);
		s = grown ? grown : s;
	}
	if (!grown || got < 0 || n > most) {
		int ret = !grown ? -ENOMEM : n > most ? -EFBIG : -errno;

		free(s);
		return ret;
	}
	s[n] = '\0';
	*text = s;
	*bytes = n;
	return 0;
}

ssize_t base_read_start(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, room - 1);
	int error = errno;

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return n < 0 ? -error : n;
}

int base_write_all(int fd, const void *data, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = write(fd, (const char *)data + done, bytes - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}
