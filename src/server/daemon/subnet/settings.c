/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Settings that change while the fabric is up: see settings.h.
 */
#include "base/util.h"
#include "daemon/subnet/settings.h"
#include "fabric/model/event.h"

static int set(struct daemon_call *call)
{
	struct control_set req = *(const struct control_set *)call->body;
	struct daemon_settings *s = call->module;
	struct shm_settings *settings = &s->f->settings;
	const uint32_t send_only = settings->sa_send_only;
	int ret;

	req.key[sizeof(req.key) - 1] = req.value[sizeof(req.value) - 1] = '\0';
	ret = fabric_settings_set(settings, req.key, req.value, true);
	if (ret)
		return ret;
	s->f->region->control->settings = *settings;
	fabric_tell(s->f,
	            &(struct fabric_event){ .kind = "set", .key = req.key, .value = req.value });
	if (settings->sa_send_only != send_only) {
		/* an SA would tell nobody; the setting's user wants it so */
		daemon_ports_refresh(s->ports);
		daemon_mads_send(s->mads);
	}
	return 0;
}

static const struct daemon_request requests[] = {
	DAEMON_OWNERS_REQUEST(SET, control_set, DAEMON_CLI, set),
};

void daemon_settings_init(struct daemon_settings *s, struct daemon_requests *all)
{
	daemon_requests_add(all, requests, ARRAY_SIZE(requests), s);
}
