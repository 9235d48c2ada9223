/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon as a process of its own fabric: see self.h.
 */
#include <errno.h>
#include <unistd.h>

#include "daemon/network/self.h"
#include "hca/link/flow.h"

int daemon_self_init(struct daemon_self *self, struct daemon_clients *clients, struct fabric *f)
{
	int ret = daemon_client_new_local(clients, &self->client);

	if (ret)
		return ret;
	ret = control_local(&self->control, daemon_client_serve, self->client);
	if (ret)
		return ret;
	self->process = hca_process_local(self->control, f->region);
	return self->process ? 0 : -ENOMEM;
}

void daemon_self_fini(struct daemon_self *self)
{
	if (self->process) {
		hca_flows_free(self->process);
		hca_process_local_free(self->process);
	}
	if (self->control)
		control_close(self->control);
	if (self->client)
		daemon_client_free(self->client);
	*self = (struct daemon_self){ 0 };
}

int daemon_self_open_hca(struct daemon_self *self, uint32_t hca, uint32_t *handle)
{
	struct daemon_client *c = self->client;
	struct daemon_hca *h;
	int fd, ret = daemon_hca_open(&c->all->objects->hcas, c->holds, hca, &h, &fd);

	if (ret)
		return ret;
	close(fd);
	*handle = h->handle;
	return 0;
}
