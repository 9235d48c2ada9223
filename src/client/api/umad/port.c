/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Open ports and their agents. A port is known by its descriptor, which programs poll.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/umad/umad.h"
#include "base/reason.h"
#include "control/path.h"
#include "wire/sm_attr.h"

#define OPENIB_OUI       0x001405 /* what umad_register() registers with */
#define CLASS_SMI        0x01
#define CLASS_SMI_ROUTED 0x81
#define CLASS_OUI_FIRST  0x30
#define CLASS_OUI_LAST   0x4F
#define OUI_MASK         0x00FFFFFF

int umad_init(void)
{
	TRACE("umad_init");
	return 0;
}

int umad_done(void)
{
	TRACE("umad_done");
	return 0;
}

static int open_port(struct umad_fabric *f, uint32_t index, struct umad_open *port)
{
	struct control_umad_at req = { .index = index };
	struct control_umad_port rep = { 0 };
	int ret = control_call(f->client, &(struct control_call){
	                                          .type = (enum control_type)CONTROL_UMAD_OPEN_PORT,
	                                          .request = &req,
	                                          .request_bytes = sizeof(req),
	                                          .reply = &rep,
	                                          .reply_bytes = sizeof(rep),
	                                          .fd = &port->fd });

	if (ret == -EACCES)
		return base_because(-EIO, "MADs are for the fabric's owner and root");
	if (ret)
		return -EIO;
	port->handle = rep.port;
	/* as the original's, also for programs that read() and write() it */
	if (fcntl(port->fd, F_SETFL, O_NONBLOCK) < 0) {
		close(port->fd);
		return -EIO;
	}
	return 0;
}

/* Whether QP 0 of the port is for programs: an Ethernet port has none. */
static bool has_smi(const struct umad_fabric *f, uint32_t index)
{
	struct shm_port p;

	shm_port_read(&f->region, index, &p);
	return p.link_layer != IBV_LINK_LAYER_ETHERNET && !(p.cap_flags & PORT_CAP_SM_DISABLED);
}

/* The descriptor, or -errno as umad_open_port() has it. @smi: only a port with a QP 0. */
static int open_descriptor(const char *ca_name, int portnum, bool smi)
{
	struct umad_open *port = calloc(1, sizeof(*port));
	struct umad_fabric *f;
	int cancel_state, ret;
	uint32_t index = 0;

	if (!port)
		return -EIO;
	umad_lock(&cancel_state);
	ret = umad_fabric_get(&f);
	if (ret)
		ret = -EOPNOTSUPP; /* as without the kernel's part */
	else
		ret = umad_resolve_port(f, ca_name, &portnum, &index);
	if (!ret && smi && !has_smi(f, index))
		ret = -ENODEV;
	if (!ret)
		ret = open_port(f, index, port);
	if (!ret) {
		ret = port->fd;
		port->port_num = (uint8_t)portnum;
		umad_open_add(port);
	} else {
		free(port);
	}
	umad_unlock(cancel_state);
	return ret == -ENOENT ? -EINVAL : ret;
}

static int open_named(const char *call, const char *ca_name, int portnum, bool smi)
{
	int ret = open_descriptor(ca_name, portnum, smi);

	return ret < 0 ? umad_failed(call, ret, ret) : ret;
}

/* The descriptor; -EOPNOTSUPP: there is no fabric; -ENODEV, -EINVAL: no such port; -EIO. */
int umad_open_port(const char *ca_name, int portnum)
{
	TRACE("ca %s port %d", ca_name ? ca_name : "", portnum);
	return open_named(__func__, ca_name, portnum, false);
}

/* Since rdma-core 53; older headers do not declare it. */
int umad_open_smi_port(const char *ca_name, int portnum);

/* The same; -ENODEV also: the port has no QP 0. */
int umad_open_smi_port(const char *ca_name, int portnum)
{
	TRACE("ca %s port %d", ca_name ? ca_name : "", portnum);
	return open_named(__func__, ca_name, portnum, true);
}

int umad_close_port(int fd)
{
	struct umad_open *port;
	int cancel_state;

	umad_lock(&cancel_state);
	port = umad_open_find(fd);
	close(fd); /* with the lock: another thread may be opening one */
	if (port)
		umad_open_closed(port);
	umad_unlock(cancel_state);
	TRACE("closed fd %d", fd);
	return 0;
}

int umad_get_fd(int fd)
{
	TRACE("fd %d", fd);
	return fd;
}

/* A program that opens the path is a subnet manager at that port, while it has the path open. */
int umad_get_issm_path(const char *ca_name, int portnum, char path[], int max)
{
	struct control_umad_at req;
	struct umad_fabric *f;
	char leaf[32], full[512];
	int cancel_state, ret;

	TRACE("ca %s port %d", ca_name ? ca_name : "", portnum);
	umad_lock(&cancel_state);
	ret = umad_fabric_get(&f) ? (ca_name && portnum ? -EINVAL : -ENODEV)
	                          : umad_resolve_port(f, ca_name, &portnum, &req.index);
	umad_unlock(cancel_state);
	if (!ret)
		ret = umad_call(CONTROL_UMAD_ISSM, &req, sizeof(req), NULL, 0);
	if (ret)
		return umad_result(ret == -ENOENT ? -EINVAL : ret);
	snprintf(leaf, sizeof(leaf), CONTROL_UMAD_ISSM_LEAF, req.index);
	ret = control_path(full, sizeof(full), control_fabric_name(), leaf);
	if (!ret && snprintf(path, (size_t)max, "%s", full) >= max)
		ret = -EINVAL; /* half a path is none */
	return umad_result(ret);
}

/* ---- agents ---- */

static bool is_oui_class(int mgmt_class)
{
	return mgmt_class >= CLASS_OUI_FIRST && mgmt_class <= CLASS_OUI_LAST;
}

static int find_handle(int fd, uint32_t *handle)
{
	struct umad_open *port;
	int cancel_state;

	umad_lock(&cancel_state);
	port = umad_open_find(fd);
	if (port)
		*handle = port->handle;
	umad_unlock(cancel_state);
	return port ? 0 : -EBADF;
}

static void note_agent(int fd, uint32_t id, bool registered, bool reassembles)
{
	struct umad_open *port;
	int cancel_state;

	umad_lock(&cancel_state);
	port = umad_open_find(fd);
	if (port) {
		port->agent[id].registered = registered;
		port->agent[id].reassembles = reassembles;
	}
	umad_unlock(cancel_state);
}

/* The agent's number, or -errno. */
static int register_agent(int fd, struct control_umad_register *req)
{
	struct control_umad_agent rep;
	int ret = find_handle(fd, &req->port);

	req->qpn = req->mgmt_class == CLASS_SMI || req->mgmt_class == CLASS_SMI_ROUTED ? 0 : 1;
	if (!ret)
		ret = umad_call(CONTROL_UMAD_REGISTER, req, sizeof(*req), &rep, sizeof(rep));
	if (!ret && rep.agent >= UMAD_CA_MAX_AGENTS)
		ret = -EPROTO;
	if (ret) {
		TRACE("fd %d registering class 0x%x version %d failed: %s", fd, req->mgmt_class,
		      req->mgmt_class_version, strerror(-ret));
		return ret;
	}
	note_agent(fd, rep.agent, true, req->rmpp_version && !(req->flags & UMAD_USER_RMPP));
	TRACE("fd %d registered to use agent %u qp %d", fd, rep.agent, req->qpn);
	return (int)rep.agent;
}

/* The same for function @name: -EPERM and errno on failure. */
static int register_with_mask(const char *name, int fd, struct control_umad_register *req,
                              const long *method_mask)
{
	int ret;

	if (method_mask)
		memcpy(req->method_mask, method_mask, sizeof(req->method_mask));
	ret = register_agent(fd, req);
	if (ret >= 0)
		return ret;
	errno = -ret;
	return umad_failed(name, ret, -EPERM);
}

int umad_register(int fd, int mgmt_class, int mgmt_version, uint8_t rmpp_version,
                  long method_mask[16 / sizeof(long)])
{
	struct control_umad_register req = { .mgmt_class = (uint8_t)mgmt_class,
		                             .mgmt_class_version = (uint8_t)mgmt_version,
		                             .oui = OPENIB_OUI,
		                             .rmpp_version = rmpp_version };

	return register_with_mask(__func__, fd, &req, method_mask);
}

int umad_register_oui(int fd, int mgmt_class, uint8_t rmpp_version, uint8_t oui[3],
                      long method_mask[16 / sizeof(long)])
{
	struct control_umad_register req = { .mgmt_class = (uint8_t)mgmt_class,
		                             .mgmt_class_version = 1,
		                             .rmpp_version = rmpp_version };

	if (!is_oui_class(mgmt_class)) {
		TRACE("mgmt class %d not in vendor range 2", mgmt_class);
		return umad_result(base_because(-EINVAL, "class 0x%02x has no OUI: 0x30 to 0x4f do",
		                                (unsigned)mgmt_class));
	}
	req.oui = (uint32_t)oui[0] << 16 | (uint32_t)oui[1] << 8 | oui[2];
	return register_with_mask(__func__, fd, &req, method_mask);
}

/* 0 or +errno. Of flags that are not known, attr->flags says which are. */
int umad_register2(int fd, struct umad_reg_attr *attr, uint32_t *agent_id)
{
	struct control_umad_register req;
	int ret;

	if (!attr || !agent_id)
		return umad_failed(__func__, -EINVAL, EINVAL);
	if (is_oui_class(attr->mgmt_class) && (!(attr->oui & OUI_MASK) || (attr->oui & ~OUI_MASK)))
		return umad_failed(__func__,
		                   base_because(-EINVAL, "class 0x%02x needs an OUI of 24 bits",
		                                attr->mgmt_class),
		                   EINVAL);
	req = (struct control_umad_register){ .mgmt_class = attr->mgmt_class,
		                              .mgmt_class_version = attr->mgmt_class_version,
		                              .flags = attr->flags,
		                              .oui = attr->oui,
		                              .rmpp_version = attr->rmpp_version };
	memcpy(req.method_mask, attr->method_mask, sizeof(req.method_mask));
	ret = register_agent(fd, &req);
	if (ret >= 0) {
		*agent_id = (uint32_t)ret;
		return 0;
	}
	if (ret == -EINVAL)
		attr->flags = 0; /* as the original has it, whatever was not valid */
	errno = -ret;
	return umad_failed(__func__, ret, -ret);
}

/* 0, or -1 and errno. */
int umad_unregister(int fd, int agentid)
{
	struct control_umad_agent req = { .agent = (uint32_t)agentid };
	int ret = find_handle(fd, &req.port);

	TRACE("fd %d unregistering agent %d", fd, agentid);
	if (!ret && req.agent >= UMAD_CA_MAX_AGENTS)
		ret = -EINVAL;
	if (!ret)
		ret = umad_call(CONTROL_UMAD_UNREGISTER, &req, sizeof(req), NULL, 0);
	if (!ret) {
		note_agent(fd, req.agent, false, false);
		return 0;
	}
	errno = -ret;
	return umad_failed(__func__, ret, -1);
}
