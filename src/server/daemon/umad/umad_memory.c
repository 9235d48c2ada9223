/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory of requests and messages: see umad_memory.h.
 */
#include <stdlib.h>

#include "daemon/umad/umad_memory.h"

#define MAX_BYTES       (512u << 20) /* of all */
#define MAX_PORT_BYTES  (128u << 20) /* of those of one open port */
#define SURE_PORT_BYTES (64u << 10)  /* whatever others have */

/* Units of work (chores.h). */
#define FREE_WORK  16
#define FREE_BYTES 2048 /* in one unit: pages go back to the system */

bool umad_memory_reserve(struct umad_open *port, size_t bytes)
{
	if (bytes > MAX_PORT_BYTES - port->message_bytes)
		return false;
	if (port->message_bytes + bytes > SURE_PORT_BYTES &&
	    port->u->message_bytes + bytes > MAX_BYTES)
		return false;
	port->message_bytes += bytes;
	port->u->message_bytes += bytes;
	return true;
}

void umad_memory_release(struct umad_open *port, size_t bytes)
{
	port->message_bytes -= bytes;
	port->u->message_bytes -= bytes;
}

static size_t room_for(size_t bytes)
{
	return bytes < MAD_BYTES ? MAD_BYTES : bytes;
}

uint8_t *umad_memory_alloc(struct umad_open *port, size_t bytes)
{
	const size_t room = room_for(bytes);
	uint8_t *message;

	if (!umad_memory_reserve(port, room))
		return NULL;
	message = malloc(room);
	if (!message)
		umad_memory_release(port, room);
	return message;
}

void umad_memory_free(struct umad_open *port, uint8_t *message, size_t bytes)
{
	if (!message)
		return;
	umad_memory_release(port, room_for(bytes));
	free(message);
}

uint32_t umad_memory_work(size_t bytes)
{
	return (uint32_t)(FREE_WORK + bytes / FREE_BYTES);
}
