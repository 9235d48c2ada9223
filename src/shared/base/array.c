/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arrays that grow: see array.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

#define FIRST_ROOM 4

/* a T * as a void *, which C otherwise does not let us read and write through a T ** */
typedef void *any_pointer __attribute__((may_alias));

int base_array_reserve_bytes(void *array, uint32_t *room, size_t want, size_t size)
{
	size_t more = *room ? (size_t)*room * 2 : FIRST_ROOM, bytes;
	any_pointer *at = (any_pointer *)array;
	void *grown;

	if (want <= *room)
		return 0;
	if (want > UINT32_MAX)
		return -ENOMEM;
	if (more < want)
		more = want;
	if (more > UINT32_MAX)
		more = UINT32_MAX;
	if (__builtin_mul_overflow(more, size, &bytes))
		return -ENOMEM;
	grown = realloc(*at, bytes);
	if (!grown)
		return -ENOMEM;
	*at = grown;
	*room = (uint32_t)more;
	/* cppcheck-suppress memleak ; memcpy() has stored it in the owner's pointer */
	return 0;
}
