/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client's tables: made, and freed when nothing of it is left. See cm.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "cm/cm.h"
#include "cm/state.h"

#define MAX_CHANNELS 4096
#define MAX_JOINS    (1u << 20)

int cm_client_new(struct cm *cm, int host_index, struct cm_client **out)
{
	struct cm_client *client = calloc(1, sizeof(*client));

	if (!client)
		return -ENOMEM;
	client->cm = cm;
	client->host = host_index < 0 ? CM_ALL_HOSTS : host_index;
	base_idtable_init(&client->channels, MAX_CHANNELS);
	base_idtable_init(&client->ids, CONTROL_CM_MAX_IDS);
	base_idtable_init(&client->announced, CONTROL_CM_MAX_IDS);
	base_idtable_init(&client->joins, MAX_JOINS);
	client->events =
	        cm->ops.memory_get(cm->ops.arg, sizeof(*client->events), &client->events_off);
	*out = client;
	return 0;
}

void cm_client_release(struct cm_client *client)
{
	if (!client->gone || client->n_channels || client->n_ending)
		return;
	base_idtable_fini(&client->channels);
	base_idtable_fini(&client->ids);
	base_idtable_fini(&client->announced);
	base_idtable_fini(&client->joins);
	if (client->events)
		client->cm->ops.memory_put(client->cm->ops.arg, client->events_off);
	free(client);
}
