/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arrays that grow. The owner keeps three things: the array (from malloc, or NULL), how many
 * elements it has, and how many it has room for. Room doubles, so that adding n elements one
 * by one copies each a constant number of times. Not thread-safe.
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Makes room for at least @want elements: @array is the address of the array's pointer, @room
 * of the uint32_t that says for how many elements there is room now. New room is not
 * initialized. Returns 0, or -ENOMEM: nothing has changed. The owner frees the array by free().
 */
#define base_array_reserve(array, room, want) \
	base_array_reserve_bytes((array), (room), (want), sizeof(**(array)))

/* The same for elements of @size bytes; @array is a T **. */
int base_array_reserve_bytes(void *array, uint32_t *room, size_t want, size_t size);

#endif
