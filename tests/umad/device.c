/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HCAs and ports as libibumad describes them, on four hosts of one HCA with one port.
 */
#include "lab.h"
#include "base/pause.h"

#define CAP_IS_SM 2

LAB_CASE(names_are_those_of_all_hosts_in_order)
{
	char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];

	assert_int_equal(umad_get_cas_names(names, UMAD_MAX_DEVICES), 4);
	for (int i = 0; i < 4; i++)
		assert_string_equal(names[i], lab_ca(i + 1));
}

LAB_CASE(no_more_names_come_than_there_is_room_for)
{
	char names[3][UMAD_CA_NAME_LEN] = { "", "", "untouched" };

	assert_int_equal(umad_get_cas_names(names, 2), 2);
	assert_string_equal(names[2], "untouched");
}

LAB_CASE(a_ca_is_described)
{
	umad_ca_t ca;

	assert_int_equal(umad_get_ca(lab_ca(2), &ca), 0);
	assert_string_equal(ca.ca_name, lab_ca(2));
	assert_int_equal(ca.node_type, 1);
	assert_int_equal(ca.numports, 1);
	assert_string_equal(ca.ca_type, "Umbel");
	assert_string_not_equal(ca.fw_ver, "");
	assert_true(ca.node_guid != 0);
	assert_true(ca.system_guid != 0);
	assert_null(ca.ports[0]);
	assert_non_null(ca.ports[1]);
	assert_int_equal(ca.ports[1]->base_lid, lab_lid(2));
	umad_release_ca(&ca);
	assert_null(ca.ports[1]);
}

LAB_CASE(a_port_is_described)
{
	umad_port_t port;

	assert_int_equal(umad_get_port(lab_ca(3), 1, &port), 0);
	assert_string_equal(port.ca_name, lab_ca(3));
	assert_int_equal(port.portnum, 1);
	assert_int_equal(port.state, 4);
	assert_int_equal(port.phys_state, 5);
	assert_int_equal(port.rate, 100);
	assert_int_equal(port.lmc, 0);
	assert_in_range(port.base_lid, 1, 0xBFFF);
	assert_in_range(port.sm_lid, 1, 0xBFFF);
	assert_string_equal(port.link_layer, "InfiniBand");
	assert_int_equal(be64toh(port.gid_prefix), 0xFE80000000000000ull);
	assert_true(port.port_guid != 0);
	assert_true(port.pkeys_size > 0);
	assert_int_equal(port.pkeys[0], 0xFFFF);
	umad_release_port(&port);
	assert_null(port.pkeys);
}

LAB_CASE(no_name_means_the_first_active_port)
{
	umad_port_t port;

	assert_int_equal(umad_get_port(NULL, 0, &port), 0);
	assert_string_equal(port.ca_name, lab_ca(1));
	assert_int_equal(port.portnum, 1);
	umad_release_port(&port);
}

LAB_CASE(no_number_means_the_cas_active_port)
{
	umad_port_t port;

	assert_int_equal(umad_get_port(lab_ca(4), 0, &port), 0);
	assert_string_equal(port.ca_name, lab_ca(4));
	assert_int_equal(port.portnum, 1);
	umad_release_port(&port);
}

LAB_CASE(what_is_not_there_is_refused)
{
	umad_port_t port;
	umad_ca_t ca;
	char path[256];

	assert_int_equal(umad_get_ca("mlx9_9", &ca), -ENOENT);
	assert_int_equal(umad_get_port("mlx9_9", 1, &port), -EIO);
	assert_int_equal(umad_get_port("mlx9_9", 0, &port), -ENODEV);
	assert_int_equal(umad_get_port(lab_ca(1), 2, &port), -EIO);
	assert_int_equal(umad_get_port(lab_ca(1), -1, &port), -EIO);
	assert_int_equal(umad_get_ca_portguids("mlx9_9", NULL, 0), -1);
	assert_int_equal(umad_open_port("mlx9_9", 1), -EINVAL);
	assert_int_equal(umad_open_port("mlx9_9", 0), -ENODEV);
	assert_int_equal(umad_open_port(lab_ca(1), 2), -EINVAL);
	assert_int_equal(umad_get_issm_path("mlx9_9", 1, path, sizeof(path)), -EINVAL);
	assert_int_equal(umad_get_issm_path(lab_ca(1), 2, path, sizeof(path)), -EINVAL);
}

LAB_CASE(guids_are_listed_by_port_number)
{
	__be64 guids[3] = { 1, 1, 1 };
	umad_port_t port;

	assert_int_equal(umad_get_port(lab_ca(2), 1, &port), 0);
	assert_int_equal(umad_get_ca_portguids(lab_ca(2), guids, 3), 2);
	assert_true(guids[0] == 0);
	assert_true(guids[1] == port.port_guid);
	assert_int_equal(umad_get_ca_portguids(lab_ca(2), guids, 1), -ENOMEM);
	umad_release_port(&port);
}

static size_t length(const struct umad_device_node *node)
{
	size_t n = 0;

	for (; node; node = node->next)
		n++;
	return n;
}

LAB_CASE(the_device_list_names_all_hcas)
{
	struct umad_device_node *list = umad_get_ca_device_list();

	assert_non_null(list);
	assert_int_equal(length(list), 4);
	umad_free_ca_device_list(list);
	umad_free_ca_device_list(NULL);
}

LAB_CASE(a_device_list_is_sorted_by_name)
{
	struct umad_device_node node[3] = { { &node[1], "c" }, { &node[2], "a" }, { NULL, "b" } };
	struct umad_device_node *head = node;

	assert_int_equal(umad_sort_ca_device_list(&head, 0), 0);
	assert_string_equal(head->ca_name, "a");
	assert_string_equal(head->next->ca_name, "b");
	assert_string_equal(head->next->next->ca_name, "c");
	assert_null(head->next->next->next);
	assert_int_equal(umad_sort_ca_device_list(&head, 3), 0);
	assert_int_equal(umad_sort_ca_device_list(&head, 2), EINVAL);
	assert_int_equal(umad_sort_ca_device_list(&head, 4), EINVAL);
}

LAB_CASE(a_port_is_opened_and_its_descriptor_is_quiet)
{
	int fd = lab_open(1);
	struct pollfd p = { .fd = umad_get_fd(fd), .events = POLLIN | POLLOUT };

	assert_int_equal(umad_get_fd(fd), fd);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(p.revents, POLLOUT);
	assert_int_equal(umad_poll(fd, 0), -ETIMEDOUT);
}

/* ---- IsSM ---- */

static uint32_t capabilities(int host)
{
	umad_port_t port;
	uint32_t mask;

	assert_int_equal(umad_get_port(lab_ca(host), 1, &port), 0);
	mask = be32toh(port.capmask);
	umad_release_port(&port);
	return mask;
}

static void wait_is_sm(int host, bool is_sm)
{
	time_t end = time(NULL) + LAB_SECONDS;
	struct base_pause pause = { 0 };

	while (!!(capabilities(host) & CAP_IS_SM) != is_sm) {
		assert_true(time(NULL) < end);
		base_pause_sleep(&pause);
	}
}

static void open_issm(int host, int *fd)
{
	char path[512];

	assert_int_equal(umad_get_issm_path(lab_ca(host), 1, path, sizeof(path)), 0);
	*fd = open(path, O_NONBLOCK); /* as opensm does */
	assert_true(*fd >= 0);
}

LAB_CASE(a_port_is_an_sm_while_its_issm_path_is_open)
{
	int fd;

	for (int i = 0; i < 50; i++) {
		open_issm(3, &fd);
#ifdef __SANITIZE_THREAD__ /* open() is the system's: nothing of ours is preloaded */
		wait_is_sm(3, true);
#endif
		assert_int_equal(capabilities(3) & CAP_IS_SM, CAP_IS_SM); /* at once */
		assert_int_equal(capabilities(4) & CAP_IS_SM, 0);
		close(fd);
		assert_int_equal(capabilities(3) & CAP_IS_SM, 0);
	}
}

/* As the device does on Linux, it counts open files, not descriptors. */
LAB_CASE(the_last_close_ends_it)
{
	int fd, copy;

	for (int i = 0; i < 20; i++) {
		open_issm(3, &fd);
		copy = dup(fd);
		assert_true(copy >= 0);
		wait_is_sm(3, true);
		close(fd);
		assert_int_equal(capabilities(3) & CAP_IS_SM, CAP_IS_SM);
		dup2(STDIN_FILENO, copy);
		assert_int_equal(capabilities(3) & CAP_IS_SM, 0);
		close(copy);
	}
}

LAB_CASE(a_dead_sms_port_is_no_sm)
{
	int fd, status;
	pid_t pid = fork();

	if (!pid) {
		open_issm(4, &fd);
		pause();
		_exit(1);
	}
	wait_is_sm(4, true);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	assert_int_equal(capabilities(4) & CAP_IS_SM, 0);
}

LAB_CASE(an_issm_path_that_does_not_fit_is_refused)
{
	char path[8];

	assert_int_equal(umad_get_issm_path(lab_ca(1), 1, path, sizeof(path)), -EINVAL);
}

/* ---- QP 0 and QP 1 of a port: found by name and version, older headers do not declare them ----
 */

/* struct umad_ca_pair */
struct pair {
	char smi_name[UMAD_CA_NAME_LEN];
	uint32_t smi_port;
	char gsi_name[UMAD_CA_NAME_LEN];
	uint32_t gsi_port;
};

typedef int (*pairs_fn)(struct pair pairs[], size_t max);
typedef int (*pair_fn)(const char *name, uint8_t port, struct pair *pair, unsigned smi);
typedef int (*open_fn)(const char *name, int port);

static void *find(const char *name, const char *version)
{
	void *fn = dlvsym(RTLD_DEFAULT, name, version);

	if (!fn)
		fail_msg("%s", dlerror());
	return fn;
}

LAB_CASE(each_hca_is_a_pair_of_its_own)
{
	pairs_fn list = (pairs_fn)find("umad_get_smi_gsi_pairs", "IBUMAD_1.4");
	struct pair pairs[8];

	assert_int_equal(list(pairs, 8), 4);
	for (int i = 0; i < 4; i++) {
		assert_string_equal(pairs[i].smi_name, lab_ca(i + 1));
		assert_string_equal(pairs[i].gsi_name, lab_ca(i + 1));
	}
	memset(pairs, 0x55, sizeof(pairs));
	assert_int_equal(list(pairs, 2), 2);
	assert_int_equal(pairs[2].smi_port, 0x55555555);
}

LAB_CASE(a_pair_is_found_by_its_hcas_name)
{
	pair_fn pair_of = (pair_fn)find("umad_get_smi_gsi_pair_by_ca_name", "IBUMAD_1.4");
	struct pair pair;

	assert_int_equal(pair_of(lab_ca(3), 1, &pair, 1), 0);
	assert_string_equal(pair.smi_name, lab_ca(3));
	assert_int_equal(pair.smi_port, 1);
	assert_string_equal(pair.gsi_name, lab_ca(3));
	assert_int_equal(pair.gsi_port, 1);
	assert_int_equal(pair_of(NULL, 0, &pair, 1), 0);
	assert_string_equal(pair.smi_name, lab_ca(1));
	assert_int_equal(pair.gsi_port, 1);
}

LAB_CASE(no_pair_is_found_for_what_is_not_there)
{
	pair_fn pair_of = (pair_fn)find("umad_get_smi_gsi_pair_by_ca_name", "IBUMAD_1.4");
	struct pair pair;

	assert_fails(pair_of("mlx9_9", 1, &pair, 0), ENODEV);
	assert_fails(pair_of(lab_ca(1), 2, &pair, 0), ENODEV);
	assert_fails(pair_of(lab_ca(1), 255, &pair, 0), ENODEV);
	assert_string_equal(pair.gsi_name, "");
	assert_int_equal(pair_of(lab_ca(1), 1, NULL, 0), -1);
}

LAB_CASE(an_smi_port_is_opened_as_any_port)
{
	open_fn open_smi = (open_fn)find("umad_open_smi_port", "IBUMAD_1.3");
	int fd = open_smi(lab_ca(2), 1);

	assert_true(fd >= 0);
	umad_close_port(fd);
	assert_int_equal(open_smi("mlx9_9", 1), -EINVAL);
	assert_int_equal(open_smi("mlx9_9", 0), -ENODEV);
}
