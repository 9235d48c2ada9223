/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The side of libibverbs that hardware drivers see: the versions IBVERBS_PRIVATE_*, of which each
 * rdma-core has one, ibv_register_driver and the helpers that once were public. libmlx5.so.1 and
 * libefa.so.1 import them with BIND_NOW, and perftest, UCX and pyverbs link those two, so every
 * name must be here for the programs to start. docs/abi.md says which rdma-core has which version.
 *
 * No driver ever gets a device from us, so the functions that would drive one refuse. Those
 * functions look at none of their arguments, and their prototypes are in a header that Debian does
 * not install (infiniband/driver.h); they are defined without parameters, which every C calling
 * convention that we build for allows. Pure conversions and file reads do their work.
 *
 * Thread safety: any thread, any time; the only state is set once.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#include "api/verbs/private.h"

/* The values of a driver's view of the GID type; private to libibverbs and its drivers. */
enum gid_type_sysfs {
	GID_TYPE_SYSFS_IB_ROCE_V1 = 0,
	GID_TYPE_SYSFS_ROCE_V2 = 1,
};

/* The head of version 34's verbs_sysfs_dev; of it we read the directory only. */
struct sysfs_dev {
	void *entry[2];
	void *provider_data;
	const void *match;
	unsigned int flags;
	char sysfs_name[IBV_SYSFS_NAME_MAX];
	dev_t sysfs_cdev;
	char ibdev_name[IBV_SYSFS_NAME_MAX];
	char ibdev_path[IBV_SYSFS_PATH_MAX];
};
static_assert(sizeof(void *) != 8 || offsetof(struct sysfs_dev, ibdev_path) == 0xb0,
              "the layout is Debian's");

static char sysfs_root[IBV_SYSFS_PATH_MAX + 1];
static pthread_once_t sysfs_root_once = PTHREAD_ONCE_INIT;

/* In the place of infiniband/driver.h and infiniband/marshall.h. */
extern bool private_verbs_allow_disassociate_destroy;
int private_ibv_cmd_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
                              struct ibv_send_wr **bad_wr);
int private_ibv_cmd_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
                              struct ibv_recv_wr **bad_wr);
int private_ibv_cmd_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
                                  struct ibv_recv_wr **bad_wr);
int private_ibv_cmd_poll_cq(void);
unsigned int private___ioctl_final_num_attrs(unsigned int num_attrs, const void *link);
void private___verbs_log(void);
void ibv_register_driver_1_1(const char *name, const void *init);
struct ibv_context *private_verbs_open_device(struct ibv_device *device, void *private_data);
void *private__verbs_init_and_alloc_context(void);
void private_verbs_uninit_context(void);
void private_verbs_set_ops(void);
void private_verbs_init_cq(void);
void *private_ibv_dmabuf_heap_cc_shared_init(void);
void *private_ibv_dmabuf_heap_alloc(void);
void private_ibv_dmabuf_heap_free(void);
void private_ibv_dmabuf_heap_destroy(void);
int private_ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
                               enum gid_type_sysfs *type);
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
int private_ibv_read_ibdev_sysfs_file(char *buf, size_t size, const struct sysfs_dev *dev,
                                      const char *format, ...)
        __attribute__((format(printf, 4, 5)));
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, const struct ib_uverbs_ah_attr *src);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, const struct ib_uverbs_qp_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, const struct ib_user_path_rec *src);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, const struct ibv_sa_path_rec *src);

/* Says whether drivers may destroy objects of a device that is gone; none of ours has any. */
SINCE_34(verbs_allow_disassociate_destroy)
bool private_verbs_allow_disassociate_destroy;

static int refuse(void)
{
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

/* Kernel commands. In place of a system call, EOPNOTSUPP both returned and in errno. */
#define REFUSE(since, name)                   \
	since(name) int private_##name(void); \
	int private_##name(void)              \
	{                                     \
		return refuse();              \
	}

/* clang-format off */
REFUSE(SINCE_34, execute_ioctl)
REFUSE(SINCE_34, ibv_cmd_advise_mr)
REFUSE(SINCE_34, ibv_cmd_alloc_dm)
REFUSE(SINCE_34, ibv_cmd_alloc_mw)
REFUSE(SINCE_34, ibv_cmd_alloc_pd)
REFUSE(SINCE_34, ibv_cmd_attach_mcast)
REFUSE(SINCE_34, ibv_cmd_close_xrcd)
REFUSE(SINCE_34, ibv_cmd_create_ah)
REFUSE(SINCE_34, ibv_cmd_create_counters)
REFUSE(SINCE_34, ibv_cmd_create_cq)
REFUSE(SINCE_34, ibv_cmd_create_cq_ex)
REFUSE(SINCE_34, ibv_cmd_create_cq_ex2)
REFUSE(SINCE_34, ibv_cmd_create_flow)
REFUSE(SINCE_34, ibv_cmd_create_flow_action_esp)
REFUSE(SINCE_34, ibv_cmd_create_qp)
REFUSE(SINCE_34, ibv_cmd_create_qp_ex)
REFUSE(SINCE_34, ibv_cmd_create_qp_ex2)
REFUSE(SINCE_34, ibv_cmd_create_rwq_ind_table)
REFUSE(SINCE_34, ibv_cmd_create_srq)
REFUSE(SINCE_34, ibv_cmd_create_srq_ex)
REFUSE(SINCE_34, ibv_cmd_create_wq)
REFUSE(SINCE_34, ibv_cmd_dealloc_mw)
REFUSE(SINCE_34, ibv_cmd_dealloc_pd)
REFUSE(SINCE_34, ibv_cmd_dereg_mr)
REFUSE(SINCE_34, ibv_cmd_destroy_ah)
REFUSE(SINCE_34, ibv_cmd_destroy_counters)
REFUSE(SINCE_34, ibv_cmd_destroy_cq)
REFUSE(SINCE_34, ibv_cmd_destroy_flow)
REFUSE(SINCE_34, ibv_cmd_destroy_flow_action)
REFUSE(SINCE_34, ibv_cmd_destroy_qp)
REFUSE(SINCE_34, ibv_cmd_destroy_rwq_ind_table)
REFUSE(SINCE_34, ibv_cmd_destroy_srq)
REFUSE(SINCE_34, ibv_cmd_destroy_wq)
REFUSE(SINCE_34, ibv_cmd_detach_mcast)
REFUSE(SINCE_34, ibv_cmd_free_dm)
REFUSE(SINCE_34, ibv_cmd_get_context)
REFUSE(SINCE_34, ibv_cmd_modify_cq)
REFUSE(SINCE_34, ibv_cmd_modify_flow_action_esp)
REFUSE(SINCE_34, ibv_cmd_modify_qp)
REFUSE(SINCE_34, ibv_cmd_modify_qp_ex)
REFUSE(SINCE_34, ibv_cmd_modify_srq)
REFUSE(SINCE_34, ibv_cmd_modify_wq)
REFUSE(SINCE_34, ibv_cmd_open_qp)
REFUSE(SINCE_34, ibv_cmd_open_xrcd)
REFUSE(SINCE_34, ibv_cmd_query_context)
REFUSE(SINCE_34, ibv_cmd_query_device_any)
REFUSE(SINCE_34, ibv_cmd_query_mr)
REFUSE(SINCE_34, ibv_cmd_query_port)
REFUSE(SINCE_34, ibv_cmd_query_qp)
REFUSE(SINCE_34, ibv_cmd_query_srq)
REFUSE(SINCE_34, ibv_cmd_read_counters)
REFUSE(SINCE_34, ibv_cmd_reg_dm_mr)
REFUSE(SINCE_34, ibv_cmd_reg_dmabuf_mr)
REFUSE(SINCE_34, ibv_cmd_reg_mr)
REFUSE(SINCE_34, ibv_cmd_req_notify_cq)
REFUSE(SINCE_34, ibv_cmd_rereg_mr)
REFUSE(SINCE_34, ibv_cmd_resize_cq)
REFUSE(SINCE_59, ibv_cmd_alloc_dmah)
REFUSE(SINCE_59, ibv_cmd_export_dmabuf_fd)
REFUSE(SINCE_59, ibv_cmd_free_dmah)
REFUSE(SINCE_59, ibv_cmd_query_port_speed)
REFUSE(SINCE_59, ibv_cmd_reg_mr_ex)
REFUSE(SINCE_65, ibv_cmd_create_comp_cntr)
REFUSE(SINCE_65, ibv_cmd_destroy_comp_cntr)
REFUSE(SINCE_65, ibv_cmd_inc_comp_cntr)
REFUSE(SINCE_65, ibv_cmd_inc_err_comp_cntr)
REFUSE(SINCE_65, ibv_cmd_qp_attach_comp_cntr)
REFUSE(SINCE_65, ibv_cmd_query_comp_cntr_caps)
REFUSE(SINCE_65, ibv_cmd_read_comp_cntr)
REFUSE(SINCE_65, ibv_cmd_read_err_comp_cntr)
REFUSE(SINCE_65, ibv_cmd_set_comp_cntr)
REFUSE(SINCE_65, ibv_cmd_set_err_comp_cntr)
/* clang-format on */

/* Callers walk the list from *bad_wr, so the three posts name the first request as the bad one. */
SINCE_34(ibv_cmd_post_send)
int private_ibv_cmd_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
                              struct ibv_send_wr **bad_wr)
{
	(void)qp;
	*bad_wr = wr;
	return refuse();
}

SINCE_34(ibv_cmd_post_recv)
int private_ibv_cmd_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
                              struct ibv_recv_wr **bad_wr)
{
	(void)qp;
	*bad_wr = wr;
	return refuse();
}

SINCE_34(ibv_cmd_post_srq_recv)
int private_ibv_cmd_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
                                  struct ibv_recv_wr **bad_wr)
{
	(void)srq;
	*bad_wr = wr;
	return refuse();
}

/* As ibv_poll_cq(): a positive number would be a count of completions. */
SINCE_34(ibv_cmd_poll_cq)
int private_ibv_cmd_poll_cq(void)
{
	refuse();
	return -1;
}

/*
 * How many attributes a chain of ioctl buffers needs; the caller sizes an array by it.
 * execute_ioctl copies nothing into that array, so the chain behind the first buffer needs no room.
 */
SINCE_34(__ioctl_final_num_attrs)
unsigned int private___ioctl_final_num_attrs(unsigned int num_attrs, const void *link)
{
	(void)link;
	return num_attrs;
}

/* Drivers log by this. VERBS_LOG_LEVEL is not honoured: they have no devices here. */
SINCE_34(__verbs_log)
void private___verbs_log(void)
{
}

/*
 * A driver's constructor hands in its table of devices and operations: accepted, never used. Each
 * version of the interface has a name of its own for it.
 */
#define REGISTER_DRIVER(version)                               \
	void verbs_register_driver_##version(const void *ops); \
	void verbs_register_driver_##version(const void *ops)  \
	{                                                      \
		(void)ops;                                     \
	}

/* clang-format off */
REGISTER_DRIVER(34)
REGISTER_DRIVER(57)
REGISTER_DRIVER(59)
REGISTER_DRIVER(64)
REGISTER_DRIVER(65)
/* clang-format on */

/*
 * The same for a driver from before rdma-core. Debian has it as a hidden version: running programs
 * find it, new ones cannot link it.
 */
__asm__(".symver ibv_register_driver_1_1, ibv_register_driver@IBVERBS_1.1");
void ibv_register_driver_1_1(const char *name, const void *init)
{
	(void)name;
	(void)init;
}

/*
 * Memory that a guest shares with its host, for confidential computing. Umbel's is memory of the
 * process, so there is no such heap to open: NULL, errno EOPNOTSUPP.
 */
SINCE_64(ibv_dmabuf_heap_cc_shared_init)
void *private_ibv_dmabuf_heap_cc_shared_init(void)
{
	refuse();
	return NULL;
}

/* Without a heap there is nothing to allocate from, to free or to destroy. */
SINCE_64(ibv_dmabuf_heap_alloc)
void *private_ibv_dmabuf_heap_alloc(void)
{
	refuse();
	return NULL;
}

SINCE_64(ibv_dmabuf_heap_free)
void private_ibv_dmabuf_heap_free(void)
{
}

SINCE_64(ibv_dmabuf_heap_destroy)
void private_ibv_dmabuf_heap_destroy(void)
{
}

/* Opens a device past ibv_open_device(), with arguments for its driver: NULL, errno EOPNOTSUPP. */
SINCE_34(verbs_open_device)
struct ibv_context *private_verbs_open_device(struct ibv_device *device, void *private_data)
{
	(void)device;
	(void)private_data;
	refuse();
	return NULL;
}

/* A driver would call this to build its context. Without a context the other functions have no
 * work. */
SINCE_34(_verbs_init_and_alloc_context)
void *private__verbs_init_and_alloc_context(void)
{
	refuse();
	return NULL;
}

SINCE_34(verbs_uninit_context)
void private_verbs_uninit_context(void)
{
}

SINCE_34(verbs_set_ops)
void private_verbs_set_ops(void)
{
}

SINCE_34(verbs_init_cq)
void private_verbs_init_cq(void)
{
}

/*
 * The type of a GID as sysfs would have it: 0 InfiniBand or RoCE v1, 1 RoCE v2; an empty entry is
 * 0. Returns 0, or -1 with errno. ibv_devinfo and pyverbs call it on any device.
 */
SINCE_34(ibv_query_gid_type)
int private_ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
                               enum gid_type_sysfs *type)
{
	struct ibv_gid_entry entry = { 0 };
	int err = ibv_query_gid_ex(context, port_num, index, &entry, 0);

	if (err && err != ENODATA) {
		errno = err;
		return -1;
	}
	*type = !err && entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? GID_TYPE_SYSFS_ROCE_V2
	                                                       : GID_TYPE_SYSFS_IB_ROCE_V1;
	return 0;
}

static void find_sysfs_root(void)
{
	const char *env = secure_getenv("SYSFS_PATH");
	size_t len;

	snprintf(sysfs_root, sizeof(sysfs_root), "%s", env ? env : "/sys");
	for (len = strlen(sysfs_root); len && sysfs_root[len - 1] == '/'; len--)
		sysfs_root[len - 1] = '\0';
}

/*
 * Where sysfs is mounted, without a trailing slash: $SYSFS_PATH as first seen, else /sys. The
 * environment of a set-user-ID program does not count. Never NULL, never freed.
 */
const char *ibv_get_sysfs_path(void)
{
	pthread_once(&sysfs_root_once, find_sysfs_root);
	return sysfs_root;
}

/*
 * Reads the file dir/file into buf as a string without its last newline. Returns its length, or -1
 * with errno; ERANGE when the text and its terminator do not fit.
 */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[PATH_MAX];
	ssize_t len;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	len = read(fd, buf, size);
	close(fd);
	if (len < 0)
		return -1;

	if (len && buf[len - 1] == '\n')
		len--;
	if ((size_t)len == size) {
		errno = ERANGE;
		return -1;
	}
	buf[len] = '\0';
	return (int)len;
}

/* The same for a file below a device's own directory, its name given in printf's manner. */
SINCE_34(ibv_read_ibdev_sysfs_file)
int private_ibv_read_ibdev_sysfs_file(char *buf, size_t size, const struct sysfs_dev *dev,
                                      const char *format, ...)
{
	char file[PATH_MAX];
	va_list args;
	int len;

	if (!dev) {
		errno = EINVAL;
		return -1;
	}
	va_start(args, format);
	len = vsnprintf(file, sizeof(file), format, args);
	va_end(args);
	if (len < 0 || len >= (int)sizeof(file)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return ibv_read_sysfs_file(dev->ibdev_path, file, buf, size);
}

/* The conversions below are for programs that talk to the kernel's uverbs and rdma_ucm
 * themselves. */
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, const struct ib_uverbs_ah_attr *src)
{
	memcpy(dst->grh.dgid.raw, src->grh.dgid, sizeof(dst->grh.dgid.raw));
	dst->grh.flow_label = src->grh.flow_label;
	dst->grh.sgid_index = src->grh.sgid_index;
	dst->grh.hop_limit = src->grh.hop_limit;
	dst->grh.traffic_class = src->grh.traffic_class;
	dst->is_global = src->is_global;
	dst->dlid = src->dlid;
	dst->sl = src->sl;
	dst->src_path_bits = src->src_path_bits;
	dst->static_rate = src->static_rate;
	dst->port_num = src->port_num;
}

/* Leaves dst->qp_state alone: the caller has put there the state that it asks the kernel about. */
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, const struct ib_uverbs_qp_attr *src)
{
	dst->cap = (struct ibv_qp_cap){
		.max_send_wr = src->max_send_wr,
		.max_recv_wr = src->max_recv_wr,
		.max_send_sge = src->max_send_sge,
		.max_recv_sge = src->max_recv_sge,
		.max_inline_data = src->max_inline_data,
	};
	dst->cur_qp_state = src->cur_qp_state;
	dst->qp_access_flags = src->qp_access_flags;
	dst->qkey = src->qkey;
	dst->rq_psn = src->rq_psn;
	dst->sq_psn = src->sq_psn;
	dst->dest_qp_num = src->dest_qp_num;
	dst->en_sqd_async_notify = src->en_sqd_async_notify;
	dst->sq_draining = src->sq_draining;
	dst->max_rd_atomic = src->max_rd_atomic;
	dst->max_dest_rd_atomic = src->max_dest_rd_atomic;
	dst->min_rnr_timer = src->min_rnr_timer;
	dst->retry_cnt = src->retry_cnt;
	dst->rnr_retry = src->rnr_retry;

	dst->path_mtu = src->path_mtu;
	dst->path_mig_state = src->path_mig_state;
	ibv_copy_ah_attr_from_kern(&dst->ah_attr, &src->ah_attr);
	dst->pkey_index = src->pkey_index;
	dst->port_num = src->port_num;
	dst->timeout = src->timeout;
	ibv_copy_ah_attr_from_kern(&dst->alt_ah_attr, &src->alt_ah_attr);
	dst->alt_pkey_index = src->alt_pkey_index;
	dst->alt_port_num = src->alt_port_num;
	dst->alt_timeout = src->alt_timeout;
}

/* All of a path record but its GIDs, which the two sides declare differently. */
#define COPY_PATH_REC(dst, src)                                                      \
	do {                                                                         \
		(dst)->dlid = (src)->dlid;                                           \
		(dst)->slid = (src)->slid;                                           \
		(dst)->raw_traffic = (src)->raw_traffic;                             \
		(dst)->flow_label = (src)->flow_label;                               \
		(dst)->hop_limit = (src)->hop_limit;                                 \
		(dst)->traffic_class = (src)->traffic_class;                         \
		(dst)->reversible = (src)->reversible;                               \
		(dst)->numb_path = (src)->numb_path;                                 \
		(dst)->pkey = (src)->pkey;                                           \
		(dst)->sl = (src)->sl;                                               \
		(dst)->mtu_selector = (src)->mtu_selector;                           \
		(dst)->mtu = (src)->mtu;                                             \
		(dst)->rate_selector = (src)->rate_selector;                         \
		(dst)->rate = (src)->rate;                                           \
		(dst)->packet_life_time_selector = (src)->packet_life_time_selector; \
		(dst)->packet_life_time = (src)->packet_life_time;                   \
		(dst)->preference = (src)->preference;                               \
	} while (0)

void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, const struct ib_user_path_rec *src)
{
	memcpy(dst->dgid.raw, src->dgid, sizeof(dst->dgid.raw));
	memcpy(dst->sgid.raw, src->sgid, sizeof(dst->sgid.raw));
	COPY_PATH_REC(dst, src);
}

void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, const struct ibv_sa_path_rec *src)
{
	memcpy(dst->dgid, src->dgid.raw, sizeof(dst->dgid));
	memcpy(dst->sgid, src->sgid.raw, sizeof(dst->sgid));
	COPY_PATH_REC(dst, src);
}
