/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Devices and what can be asked of them: ibv_get_device_list(3), ibv_open_device(3),
 * ibv_query_device(3), _port(3), _gid(3), _gid_ex(3), _gid_table(3), _pkey(3); and what
 * the device has not.
 */
#include "lab.h"

/* ---- devices ---- */

LAB_CASE(every_host_has_its_device_in_the_list)
{
	struct ibv_device **list;
	char name[32];
	int n;

	assert_non_null(list = ibv_get_device_list(&n));
	assert_int_equal(n, 4);
	assert_null(list[4]);
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "umbel_h%d_0", i + 1);
		assert_string_equal(ibv_get_device_name(list[i]), name);
		assert_int_equal(list[i]->node_type, IBV_NODE_CA);
		assert_int_equal(list[i]->transport_type, IBV_TRANSPORT_IB);
	}
	ibv_free_device_list(list);
}

LAB_CASE(the_list_may_be_asked_for_without_its_length)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	assert_non_null(list);
	assert_non_null(list[3]);
	assert_null(list[4]);
	ibv_free_device_list(list);
}

LAB_CASE(a_device_can_be_opened_after_its_list_is_freed)
{
	assert_string_equal(lab_open(3)->device->name, "umbel_h3_0");
}

LAB_CASE(a_device_can_be_opened_twice)
{
	struct ibv_context *a = lab_open(1), *b = lab_open(1);

	assert_ptr_not_equal(a, b);
	assert_int_not_equal(a->async_fd, b->async_fd);
}

/* In the child: how many devices are there on host h2, and whose? */
static int devices_of_host_2(void)
{
	struct ibv_device **list;
	int n;

	setenv("UMBEL_HOST", "h2", 1);
	list = ibv_get_device_list(&n);
	return !list || n != 1 || strcmp(ibv_get_device_name(list[0]), "umbel_h2_0");
}

LAB_CASE(a_process_on_a_host_sees_that_hosts_device_alone)
{
	pid_t child = fork();

	if (!child)
		_exit(devices_of_host_2());
	harness_expect_success(child);
}

LAB_CASE(each_device_has_guids_of_its_own)
{
	uint64_t seen[4];

	for (int i = 0; i < 4; i++) {
		struct ibv_context *context = lab_open(i + 1);
		struct ibv_device_attr attr;

		assert_int_equal(ibv_query_device(context, &attr), 0);
		assert_int_not_equal(attr.node_guid, 0);
		assert_int_not_equal(attr.sys_image_guid, 0);
		assert_int_equal(attr.node_guid, ibv_get_device_guid(lab_device(i + 1)));
		seen[i] = attr.node_guid;
		for (int k = 0; k < i; k++)
			assert_true(seen[k] != seen[i]);
	}
}

LAB_CASE(the_device_says_what_it_can)
{
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(lab_open(1), &attr), 0);
	assert_int_not_equal(attr.vendor_id, 0);
	assert_int_not_equal(attr.fw_ver[0], 0);
	assert_int_equal(attr.phys_port_cnt, 1);
	assert_true(attr.max_qp > 0 && attr.max_qp_wr > 0 && attr.max_sge >= 4);
	assert_true(attr.max_cq > 0 && attr.max_cqe > 0 && attr.max_mr > 0 && attr.max_pd > 0);
	assert_true(attr.max_ah > 0 && attr.max_pkeys > 0);
	assert_int_equal(attr.atomic_cap, IBV_ATOMIC_HCA);
	assert_true(attr.max_qp_rd_atom > 0 && attr.max_qp_init_rd_atom > 0 &&
	            attr.max_res_rd_atom > 0);
	assert_true(attr.max_srq > 0 && attr.max_srq_wr > 0 && attr.max_srq_sge > 0);
	assert_int_equal(attr.max_sge_rd, attr.max_sge); /* a READ's entries are as others */
	assert_true(attr.device_cap_flags & IBV_DEVICE_BAD_PKEY_CNTR);
	assert_true(attr.device_cap_flags & IBV_DEVICE_BAD_QKEY_CNTR);
}

static struct timespec raw_clock(struct ibv_context *context)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	assert_int_equal(ibv_query_rt_values_ex(context, &values), 0);
	assert_int_equal(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	assert_int_equal(values.raw_clock.tv_sec, 0);
	return values.raw_clock;
}

LAB_CASE(the_real_time_values_are_of_the_completion_timestamps_clock)
{
	struct lab_end *e = lab_end(1);
	struct ibv_cq_init_attr_ex init = { .cqe = 4,
		                            .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(e->context, &init);
	struct ibv_qp *qp = lab_qp(e->pd, &(struct ibv_qp_init_attr){
	                                          .send_cq = ibv_cq_ex_to_cq(cq),
	                                          .recv_cq = ibv_cq_ex_to_cq(cq),
	                                          .cap = { 1, 1, 1, 1, 0 },
	                                          .qp_type = IBV_QPT_UD,
	                                  });
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_send_wr *bad;
	struct lab_request r;
	uint64_t before, stamp, after;

	lab_start(qp, LAB_QKEY);
	lab_request(e, &r, lab_ah_to(e, e), qp->qp_num, "message", 7);
	before = (uint64_t)raw_clock(e->context).tv_nsec;
	assert_int_equal(ibv_post_send(qp, &r.wr, &bad), 0);
	assert_int_equal(ibv_start_poll(cq, &poll), 0);
	stamp = ibv_wc_read_completion_ts(cq);
	ibv_end_poll(cq);
	after = (uint64_t)raw_clock(e->context).tv_nsec;
	assert_true(before <= stamp && stamp <= after);
	lab_forget(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

LAB_CASE(real_time_values_that_nobody_knows_are_not_marked)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RESERVED };

	assert_int_equal(ibv_query_rt_values_ex(lab_open(1), &values), 0);
	assert_int_equal(values.comp_mask, 0);
}

LAB_CASE(the_multicast_limits_are_those_of_the_fabric)
{
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(lab_open(1), &attr), 0);
	assert_true(attr.max_mcast_grp > 0);
	assert_true(attr.max_mcast_qp_attach > 0);
	assert_true(attr.max_total_mcast_qp_attach > 0);
	assert_true(attr.max_total_mcast_qp_attach <=
	            (long long)attr.max_mcast_grp * attr.max_mcast_qp_attach);
}

LAB_CASE(the_extended_query_says_the_same_and_more)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(context, &attr), 0);
	assert_int_equal(ibv_query_device_ex(context, NULL, &ex), 0);
	assert_memory_equal(&ex.orig_attr, &attr, sizeof(attr));
	assert_int_equal(ex.phys_port_cnt_ex, 1);
	assert_int_equal(ex.device_cap_flags_ex & 0xFFFFFFFF, attr.device_cap_flags);
	assert_int_equal(ex.cq_mod_caps.max_cq_count, UINT16_MAX);
	assert_int_equal(
	        ibv_query_device_ex(context, &(struct ibv_query_device_ex_input){ 0 }, &ex), 0);
}

LAB_CASE(an_extended_query_for_the_unknown_is_refused)
{
	struct ibv_query_device_ex_input in = { .comp_mask = 1 };
	struct ibv_device_attr_ex ex;

	assert_int_equal(ibv_query_device_ex(lab_open(1), &in, &ex), EINVAL);
}

/* ---- ports ---- */

LAB_CASE(the_port_says_how_it_is)
{
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(lab_open(1), 1, &attr), 0);
	assert_int_equal(attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(attr.max_mtu, IBV_MTU_4096);
	assert_int_equal(attr.active_mtu, IBV_MTU_4096);
	assert_true(attr.gid_tbl_len > 1);
	assert_true(attr.pkey_tbl_len > 0);
	assert_in_range(attr.lid, 1, 0xBFFF);
	assert_in_range(attr.sm_lid, 1, 0xBFFF);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_INFINIBAND);
	assert_int_equal(attr.phys_state, 5 /* LinkUp */);
	assert_true(attr.max_msg_sz >= LAB_MTU);
	assert_true(attr.active_width && attr.active_speed);
}

LAB_CASE(each_port_has_a_lid_of_its_own)
{
	uint16_t lid[4];

	for (int i = 0; i < 4; i++) {
		struct ibv_port_attr attr;

		assert_int_equal(ibv_query_port(lab_open(i + 1), 1, &attr), 0);
		lid[i] = attr.lid;
		for (int k = 0; k < i; k++)
			assert_int_not_equal(lid[k], lid[i]);
	}
}

/* A program that was built for a newer library has a longer struct. */
LAB_CASE(what_is_unknown_of_a_port_reads_as_zero)
{
	struct ibv_context *context = lab_open(1);
	struct {
		struct ibv_port_attr known;
		char unknown[16];
	} attr;
	static const char zero[sizeof(attr.unknown)];

	memset(&attr, 0xEE, sizeof(attr));
	assert_int_equal(verbs_get_ctx(context)->query_port(context, 1, &attr.known, sizeof(attr)),
	                 0);
	assert_int_equal(attr.known.state, IBV_PORT_ACTIVE);
	assert_memory_equal(attr.unknown, zero, sizeof(zero));
}

LAB_CASE(a_port_that_is_not_there_cannot_be_queried)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(context, 0, &attr), EINVAL);
	assert_int_equal(ibv_query_port(context, 2, &attr), EINVAL);
	assert_int_equal(ibv_query_port(context, 255, &attr), EINVAL);
}

/* ---- GIDs ---- */

LAB_CASE(the_first_gid_is_prefix_and_port_guid)
{
	struct ibv_context *context = lab_open(1);
	static const uint8_t prefix[8] = { 0xFE, 0x80 };
	static const uint8_t zero[8];
	union ibv_gid gid;

	assert_int_equal(ibv_query_gid(context, 1, 0, &gid), 0);
	assert_memory_equal(gid.raw, prefix, 8);
	assert_memory_not_equal(gid.raw + 8, zero, 8);
}

LAB_CASE(an_empty_gid_index_reads_as_zero)
{
	struct ibv_context *context = lab_open(1);
	union ibv_gid gid, zero = { .raw = { 0 } };
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(context, 1, &port), 0);
	assert_int_equal(ibv_query_gid(context, 1, port.gid_tbl_len - 1, &gid), 0);
	assert_memory_equal(&gid, &zero, sizeof(gid));
}

LAB_CASE(a_gid_beyond_the_table_is_refused)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_port_attr port;
	union ibv_gid gid;

	assert_int_equal(ibv_query_port(context, 1, &port), 0);
	errno = 0;
	assert_int_equal(ibv_query_gid(context, 1, port.gid_tbl_len, &gid), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_query_gid(context, 1, -1, &gid), -1);
	assert_int_equal(ibv_query_gid(context, 0, 0, &gid), -1);
	assert_int_equal(ibv_query_gid(context, 2, 0, &gid), -1);
}

LAB_CASE(a_gid_entry_says_where_and_what_it_is)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_gid_entry entry;
	union ibv_gid gid;

	assert_int_equal(ibv_query_gid(context, 1, 0, &gid), 0);
	assert_int_equal(ibv_query_gid_ex(context, 1, 0, &entry, 0), 0);
	assert_memory_equal(&entry.gid, &gid, sizeof(gid));
	assert_int_equal(entry.gid_index, 0);
	assert_int_equal(entry.port_num, 1);
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_IB);
	assert_int_equal(entry.ndev_ifindex, 0);
}

LAB_CASE(an_empty_gid_entry_says_enodata)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(context, 1, &port), 0);
	assert_int_equal(ibv_query_gid_ex(context, 1, (uint32_t)port.gid_tbl_len - 1, &entry, 0),
	                 ENODATA);
}

LAB_CASE(a_gid_entry_that_cannot_be_is_refused)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(context, 1, &port), 0);
	assert_int_equal(ibv_query_gid_ex(context, 1, (uint32_t)port.gid_tbl_len, &entry, 0),
	                 EINVAL);
	assert_int_equal(ibv_query_gid_ex(context, 0, 0, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(context, 2, 0, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(context, 1, 0, &entry, 1), EINVAL);
}

/* Not in the headers: Debian's programs call it. */
LAB_CASE(a_gids_type_is_as_sysfs_has_it)
{
	int (*type_of)(struct ibv_context *, uint8_t, unsigned, int *) =
	        dlvsym(RTLD_DEFAULT, "ibv_query_gid_type", "IBVERBS_PRIVATE_34");
	struct ibv_context *context = lab_open(1);
	struct ibv_port_attr port;
	int type = -1;

	assert_non_null(type_of);
	assert_int_equal(ibv_query_port(context, 1, &port), 0);
	assert_int_equal(type_of(context, 1, 0, &type), 0);
	assert_int_equal(type, 0);
	type = -1; /* an empty entry has one, too */
	assert_int_equal(type_of(context, 1, (unsigned)port.gid_tbl_len - 1, &type), 0);
	assert_int_equal(type, 0);
	type = -1;
	errno = 0;
	assert_int_equal(type_of(context, 1, (unsigned)port.gid_tbl_len, &type), -1);
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_int_equal(type_of(context, 2, 0, &type), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(type, -1);
}

LAB_CASE(the_gid_table_lists_what_is_not_empty)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_gid_entry table[64], entry;
	struct ibv_port_attr port;
	ssize_t n, k = 0;

	assert_int_equal(ibv_query_port(context, 1, &port), 0);
	n = ibv_query_gid_table(context, table, LAB_ARRAY(table), 0);
	assert_in_range(n, 1, port.gid_tbl_len - 1);
	for (int i = 0; i < port.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(context, 1, (uint32_t)i, &entry, 0))
			continue;
		assert_memory_equal(&table[k].gid, &entry.gid, sizeof(entry.gid));
		assert_int_equal(table[k++].gid_index, i);
	}
	assert_int_equal(k, n);
}

LAB_CASE(a_gid_table_that_does_not_fit_is_refused)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_gid_entry table[1];

	assert_int_equal(ibv_query_gid_table(context, table, 0, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(context, table, 1, 1), -EINVAL);
}

/* ---- P_Keys ---- */

LAB_CASE(the_first_pkey_is_the_default_one)
{
	struct ibv_context *context = lab_open(1);
	__be16 pkey;

	assert_int_equal(ibv_query_pkey(context, 1, 0, &pkey), 0);
	assert_int_equal(pkey, htobe16(0xFFFF));
	assert_int_equal(ibv_get_pkey_index(context, 1, pkey), 0);
}

LAB_CASE(a_pkey_beyond_the_table_is_refused)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_port_attr port;
	__be16 pkey;

	assert_int_equal(ibv_query_port(context, 1, &port), 0);
	assert_int_equal(ibv_query_pkey(context, 1, port.pkey_tbl_len - 1, &pkey), 0);
	assert_int_equal(ibv_query_pkey(context, 1, port.pkey_tbl_len, &pkey), -1);
	assert_int_equal(ibv_query_pkey(context, 1, -1, &pkey), -1);
	assert_int_equal(ibv_query_pkey(context, 0, 0, &pkey), -1);
	assert_int_equal(ibv_query_pkey(context, 2, 0, &pkey), -1);
}

LAB_CASE(a_pkey_that_is_not_there_has_no_index)
{
	struct ibv_context *context = lab_open(1);

	assert_int_equal(ibv_get_pkey_index(context, 1, htobe16(0x8123)), -1);
	assert_int_equal(ibv_get_pkey_index(context, 2, htobe16(0xFFFF)), -1);
}

/* ---- files ---- */

/* Not in the headers, either. Returns what is read of a file of that text. */
static int read_file(const char *text, char *buffer, size_t size)
{
	int (*read_sysfs)(const char *, const char *, char *, size_t) =
	        dlvsym(RTLD_DEFAULT, "ibv_read_sysfs_file", "IBVERBS_1.0");
	char dir[] = "/tmp/umbel-query.XXXXXX", path[64];
	FILE *f;
	int ret;

	assert_non_null(read_sysfs);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	assert_non_null(f = fopen(path, "w"));
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	errno = 0;
	ret = read_sysfs(dir, "file", buffer, size);
	unlink(path);
	rmdir(dir);
	return ret;
}

LAB_CASE(a_file_is_read_without_its_last_newline)
{
	char buffer[8] = "before";

	assert_int_equal(read_file("", buffer, sizeof(buffer)), 0);
	assert_string_equal(buffer, "");
	assert_int_equal(read_file("one\n", buffer, sizeof(buffer)), 3);
	assert_string_equal(buffer, "one");
	assert_int_equal(read_file("a\nbcd\n", buffer, sizeof(buffer)), 5);
	assert_string_equal(buffer, "a\nbcd");
	assert_int_equal(read_file("7 bytes\n", buffer, sizeof(buffer)), 7);
	assert_string_equal(buffer, "7 bytes");
	assert_int_equal(read_file("8 bytes.", buffer, sizeof(buffer)), -1);
	assert_int_equal(errno, ERANGE);
}

/* ---- what the device has not ---- */

#define EXPECT_UNSUPPORTED_POINTER(call)             \
	do {                                         \
		errno = 0;                           \
		assert_null(call);                   \
		assert_int_equal(errno, EOPNOTSUPP); \
	} while (0)

LAB_CASE(objects_that_are_not_here_are_not_supported)
{
	struct lab_end *e = lab_end(1);
	struct ibv_context *c = e->context;
	struct ibv_srq_init_attr_ex srq = { .comp_mask =
		                                    IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
		                            .srq_type = IBV_SRQT_TM,
		                            .pd = e->pd };
	struct ibv_wq_init_attr wq = { 0 };
	struct ibv_rwq_ind_table_init_attr table = { 0 };
	struct ibv_counters_init_attr counters = { 0 };
	struct ibv_flow_attr flow = { 0 };

	EXPECT_UNSUPPORTED_POINTER(ibv_create_srq_ex(c, &srq));
	srq.srq_type = IBV_SRQT_BASIC;
	srq.comp_mask |= 1 << 20; /* of a program that was built for a newer library */
	EXPECT_UNSUPPORTED_POINTER(ibv_create_srq_ex(c, &srq));
	EXPECT_UNSUPPORTED_POINTER(ibv_create_wq(c, &wq));
	EXPECT_UNSUPPORTED_POINTER(ibv_create_rwq_ind_table(c, &table));
	EXPECT_UNSUPPORTED_POINTER(ibv_create_counters(c, &counters));
	EXPECT_UNSUPPORTED_POINTER(ibv_create_flow(e->qp, &flow));
}

LAB_CASE(calls_that_are_not_here_are_not_supported)
{
	struct lab_end *e = lab_end(1);
	struct ibv_qp_rate_limit_attr rate = { 0 };
	struct ibv_ece ece = { 0 };

	assert_int_equal(ibv_modify_qp_rate_limit(e->qp, &rate), EOPNOTSUPP);
	assert_int_equal(ibv_query_ece(e->qp, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_set_ece(e->qp, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_query_qp_data_in_order(e->qp, IBV_WR_SEND, 0), 0);
	assert_int_equal(ibv_get_device_index(lab_device(1)), -1);
}
