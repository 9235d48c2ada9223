/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finding HCAs, connecting queue pairs, and the socket by which two programs meet.
 */
#include "posix.h"
#include "pair.h"

#include <regex.h>

void ai_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "FAIL: %s:%d: %s (errno: %s)\n", file, line, what, strerror(errno));
	exit(1);
}

/* One line of a file; false if there is none. */
static bool read_line(const char *path, char *line, int bytes)
{
	FILE *f = fopen(path, "re");
	bool found = f && fgets(line, bytes, f);

	if (f)
		fclose(f);
	return found;
}

/* Where the HCA stands among PCI devices, and at which NUMA node: topologies of a machine are drawn
 * of these. */
static void find_place(struct ai_device *d)
{
	char link[128], file[PATH_MAX + 16], line[32];
	regex_t pci;

	snprintf(link, sizeof(link), "/sys/class/infiniband/%s/device", d->name);
	AI_CHECK(realpath(link, d->path));
	AI_CHECK(!regcomp(&pci, "^/sys/devices/.*/[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}[.][0-7]$",
	                  REG_EXTENDED | REG_NOSUB));
	AI_CHECK(!regexec(&pci, d->path, 0, NULL, 0));
	regfree(&pci);
	snprintf(file, sizeof(file), "%s/numa_node", d->path);
	AI_CHECK(read_line(file, line, sizeof(line)));
	d->numa = atoi(line);
	AI_CHECK(d->numa >= -1);
}

/* Whether a GID is of RoCE version 2 and of an IPv4 address. */
static bool is_usable(const struct ai_device *d, int index, const union ibv_gid *gid)
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	char file[160], line[32];

	snprintf(file, sizeof(file), "/sys/class/infiniband/%s/ports/%u/gid_attrs/types/%d",
	         d->name, d->port, index);
	return !memcmp(gid, mapped, sizeof(mapped)) && read_line(file, line, sizeof(line)) &&
	       strstr(line, "v2");
}

static void choose_gid(struct ai_device *d)
{
	union ibv_gid gid;

	d->gid_index = 0;
	AI_CHECK(!ibv_query_gid(d->context, d->port, 0, &d->gid));
	for (int i = 0; d->attr.link_layer == IBV_LINK_LAYER_ETHERNET && i < d->attr.gid_tbl_len;
	     i++) {
		AI_CHECK(!ibv_query_gid(d->context, d->port, i, &gid));
		if (!is_usable(d, i, &gid))
			continue;
		d->gid = gid;
		d->gid_index = (uint8_t)i;
		return;
	}
	AI_CHECK(d->attr.link_layer == IBV_LINK_LAYER_INFINIBAND || !"no GID of RoCE v2 and IPv4");
}

/* GPU memory by a descriptor: a device that cannot says so of one that is none. */
static void ask_for_dmabuf(struct ai_device *d)
{
	struct ibv_pd *pd = ibv_alloc_pd(d->context);

	AI_CHECK(pd);
	errno = 0;
	AI_CHECK(!ibv_reg_dmabuf_mr(pd, 0, 0, 0, -1, 0));
	AI_CHECK(errno == EOPNOTSUPP || errno == EPROTONOSUPPORT);
	AI_CHECK(!ibv_dealloc_pd(pd));
}

static bool open_device(struct ai_device *d, struct ibv_device *device)
{
	struct ibv_device_attr attr;

	memset(d, 0, sizeof(*d));
	snprintf(d->name, sizeof(d->name), "%s", ibv_get_device_name(device));
	AI_CHECK(d->context = ibv_open_device(device));
	AI_CHECK(!ibv_query_device(d->context, &attr));
	for (d->port = 1; d->port <= attr.phys_port_cnt; d->port++) {
		AI_CHECK(!ibv_query_port(d->context, d->port, &d->attr));
		if (d->attr.state == IBV_PORT_ACTIVE)
			break;
	}
	if (d->port > attr.phys_port_cnt) {
		AI_CHECK(!ibv_close_device(d->context));
		return false;
	}
	find_place(d);
	choose_gid(d);
	ask_for_dmabuf(d);
	AI_CHECK(d->pd = ibv_alloc_pd(d->context));
	AI_CHECK(d->cq = ibv_create_cq(d->context, 4 * AI_MAX_SENDS, NULL, NULL, 0));
	return true;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct ai_device *)a)->path, ((const struct ai_device *)b)->path);
}

int ai_find_devices(struct ai_device all[static AI_MAX_DEVICES])
{
	struct ibv_device **list;
	int listed, n = 0;

	alarm(AI_SECONDS);
	ibv_fork_init();
	/* relaxed ordering is asked for where this call is */
	AI_CHECK(dlsym(RTLD_DEFAULT, "ibv_reg_mr_iova2"));
	AI_CHECK(list = ibv_get_device_list(&listed));
	for (int i = 0; i < listed && n < AI_MAX_DEVICES; i++)
		n += open_device(&all[n], list[i]);
	ibv_free_device_list(list);
	qsort(all, (size_t)n, sizeof(*all), by_path);
	for (int i = 1; i < n; i++) /* no two HCAs in one place */
		AI_CHECK(strcmp(all[i - 1].path, all[i].path) != 0);
	return n;
}

struct ibv_qp *ai_make_qp(struct ai_device *d)
{
	struct ibv_qp_init_attr init = { .send_cq = d->cq,
		                         .recv_cq = d->cq,
		                         .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = d->port };
	struct ibv_ece ece;
	struct ibv_qp *qp;

	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	init.cap = (struct ibv_qp_cap){ .max_send_wr = AI_MAX_SENDS,
		                        .max_recv_wr = AI_MAX_SENDS,
		                        .max_send_sge = 1,
		                        .max_recv_sge = 1,
		                        .max_inline_data = 64 };
	AI_CHECK(qp = ibv_create_qp(d->pd, &init));
	AI_CHECK(!ibv_modify_qp(
	        qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	AI_CHECK(ibv_query_ece(qp, &ece) == EOPNOTSUPP); /* which they go on without */
	return qp;
}

struct ai_end ai_end_of(const struct ibv_qp *qp, const struct ai_device *d)
{
	return (struct ai_end){ .gid = d->gid,
		                .qpn = qp->qp_num,
		                .lid = d->attr.lid,
		                .mtu = (uint8_t)d->attr.active_mtu };
}

void ai_connect_qp(struct ibv_qp *qp, const struct ai_device *d, const struct ai_end *peer,
                   uint8_t timeout)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
		                    .path_mtu = peer->mtu < d->attr.active_mtu ? peer->mtu
		                                                               : d->attr.active_mtu,
		                    .dest_qp_num = peer->qpn,
		                    .max_dest_rd_atomic = 1,
		                    .min_rnr_timer = 12 };

	attr.ah_attr.port_num = d->port;
	attr.ah_attr.dlid = peer->lid;
	if (d->attr.link_layer == IBV_LINK_LAYER_ETHERNET) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh = (struct ibv_global_route){ .dgid = peer->gid,
			                                      .sgid_index = d->gid_index,
			                                      .hop_limit = 255 };
		attr.ah_attr.sl = 135; /* as UCCL has it: a card takes the low bits */
	}
	AI_CHECK(!ibv_modify_qp(qp, &attr,
	                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
	                                IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
		                     .timeout = timeout,
		                     .retry_cnt = 7,
		                     .rnr_retry = 7,
		                     .max_rd_atomic = 1 };
	AI_CHECK(!ibv_modify_qp(qp, &attr,
	                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
	                                IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
	                                IBV_QP_MAX_QP_RD_ATOMIC));
}

int ai_meet(const char *path, bool listens)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), peer;

	AI_CHECK(fd >= 0 && strlen(path) < sizeof(at.sun_path));
	strcpy(at.sun_path, path);
	if (!listens) {
		while (connect(fd, (struct sockaddr *)&at, sizeof(at)))
			nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
		return fd;
	}
	AI_CHECK(!bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 1));
	AI_CHECK((peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0);
	close(fd);
	return peer;
}

void ai_swap(int sock, const void *mine, void *theirs, size_t bytes)
{
	AI_CHECK(send(sock, mine, bytes, MSG_NOSIGNAL) == (ssize_t)bytes);
	AI_CHECK(recv(sock, theirs, bytes, MSG_WAITALL) == (ssize_t)bytes);
}
