/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registering for classes and methods: what is accepted, which agents exclude each other, and until
 * when.
 */
#include "lab.h"

static const struct umad_reg_attr perf = { .mgmt_class = UMAD_CLASS_PERF_MGMT,
	                                   .mgmt_class_version = 1,
	                                   .method_mask = { LAB_METHOD(LAB_TRAP), 0 } };

static void expect_registered(int fd, const struct umad_reg_attr *attr)
{
	int err;

	lab_register(fd, attr, &err);
	assert_int_equal(err, 0);
}

static void expect_refused(int fd, const struct umad_reg_attr *attr, int expected)
{
	int err;

	lab_register(fd, attr, &err);
	assert_int_equal(err, expected);
}

LAB_CASE(agents_are_numbered_from_0)
{
	int fd = lab_open(1);

	assert_int_equal(lab_agent(fd, 0), 0);
	assert_int_equal(lab_agent(fd, 0), 1);
}

LAB_CASE(a_number_that_is_free_is_used_again)
{
	int fd = lab_open(1);

	lab_agent(fd, 0);
	lab_agent(fd, 0);
	assert_int_equal(umad_unregister(fd, 0), 0);
	assert_int_equal(lab_agent(fd, 0), 0);
}

LAB_CASE(a_port_has_no_more_than_32_agents)
{
	int fd = lab_open(1);

	for (int i = 0; i < UMAD_CA_MAX_AGENTS; i++)
		assert_int_equal(lab_agent(fd, 0), i);
	expect_refused(fd, &perf, ENOMEM);
}

LAB_CASE(a_method_that_is_taken_is_refused)
{
	int fd = lab_open(1), other = lab_open(1);

	expect_registered(fd, &perf);
	expect_refused(fd, &perf, EINVAL);
	expect_refused(other, &perf, EINVAL);
}

LAB_CASE(other_methods_versions_and_ports_are_free)
{
	int fd = lab_open(1);
	struct umad_reg_attr attr = perf;

	expect_registered(fd, &perf);
	expect_registered(lab_open(2), &perf);
	attr.mgmt_class_version = 2;
	expect_registered(fd, &attr);
	attr = perf;
	attr.method_mask[0] = LAB_METHOD(LAB_SEND);
	expect_registered(fd, &attr);
	attr.method_mask[0] = 0;
	attr.method_mask[1] = 1;
	expect_registered(fd, &attr);
}

LAB_CASE(vendors_with_different_ouis_share_a_class)
{
	struct umad_reg_attr attr = { .mgmt_class = LAB_CLASS,
		                      .mgmt_class_version = 1,
		                      .oui = LAB_OUI,
		                      .method_mask = { LAB_METHOD(LAB_GET), 0 } };
	int fd = lab_open(1);

	expect_registered(fd, &attr);
	expect_refused(fd, &attr, EINVAL);
	attr.oui++;
	expect_registered(fd, &attr);
}

LAB_CASE(a_method_is_free_again_when_its_agent_is_gone)
{
	int fd = lab_open(1), err, agent = lab_register(fd, &perf, &err);

	assert_int_equal(err, 0);
	assert_int_equal(umad_unregister(fd, agent), 0);
	expect_registered(fd, &perf);
}

LAB_CASE(a_method_is_free_again_when_its_port_is_closed)
{
	int fd = umad_open_port(lab_ca(1), 1);

	expect_registered(fd, &perf);
	umad_close_port(fd);
	expect_registered(lab_open(1), &perf);
}

LAB_CASE(the_agents_of_a_dead_process_are_gone)
{
	int fd = lab_open(1), pipe_fd[2], status, err;
	pid_t pid;
	char byte;

	assert_int_equal(pipe(pipe_fd), 0);
	pid = fork();
	if (!pid) {
		int own = umad_open_port(lab_ca(1), 1);

		lab_register(own, &perf, &err);
		byte = (char)err;
		_exit(write(pipe_fd[1], &byte, 1) == 1 && pause());
	}
	assert_int_equal(read(pipe_fd[0], &byte, 1), 1);
	assert_int_equal(byte, 0);
	expect_refused(fd, &perf, EINVAL);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	expect_registered(fd, &perf);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

LAB_CASE(a_child_registers_at_a_port_that_it_inherits)
{
	int fd = lab_open(1), status, err;
	pid_t pid = fork();

	if (!pid) {
		lab_register(fd, &perf, &err);
		_exit(err);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	expect_refused(fd, &perf, EINVAL); /* it is the port's, and stays */
}

LAB_CASE(classes_that_do_not_exist_are_refused)
{
	struct umad_reg_attr attr = { .mgmt_class_version = 1 };
	static const uint8_t classes[] = { 0x50, 0x80, 0x82, 0xFF };
	int fd = lab_open(1);

	for (size_t i = 0; i < LAB_COUNT(classes); i++) {
		attr.mgmt_class = classes[i];
		expect_refused(fd, &attr, EINVAL);
	}
	attr.mgmt_class = 0x4;
	attr.mgmt_class_version = 0x83;
	expect_refused(fd, &attr, EINVAL);
}

LAB_CASE(a_vendor_class_needs_an_oui)
{
	struct umad_reg_attr attr = { .mgmt_class = LAB_CLASS, .mgmt_class_version = 1 };
	int fd = lab_open(1);

	expect_refused(fd, &attr, EINVAL);
	attr.oui = 0x01000000;
	expect_refused(fd, &attr, EINVAL);
}

LAB_CASE(rmpp_is_refused_to_a_class_without_it)
{
	struct umad_reg_attr attr = perf;
	int fd = lab_open(1);

	attr.rmpp_version = 1;
	expect_refused(fd, &attr, EINVAL);
	attr = (struct umad_reg_attr){ .mgmt_class = UMAD_CLASS_SUBN_ADM,
		                       .mgmt_class_version = 2,
		                       .rmpp_version = 2 };
	expect_refused(fd, &attr, EINVAL);
	attr.rmpp_version = 1;
	expect_registered(fd, &attr);
}

LAB_CASE(flags_that_nobody_knows_are_refused)
{
	struct umad_reg_attr attr = perf;
	int fd = lab_open(1);
	uint32_t agent;

	attr.flags = 1u << 31;
	assert_int_equal(umad_register2(fd, &attr, &agent), EINVAL);
	assert_int_equal(attr.flags, 0);
}

LAB_CASE(nothing_to_fill_in_is_refused)
{
	struct umad_reg_attr attr = perf;
	int fd = lab_open(1);
	uint32_t agent;

	assert_int_equal(umad_register2(fd, NULL, &agent), EINVAL);
	assert_int_equal(umad_register2(fd, &attr, NULL), EINVAL);
}

LAB_CASE(older_calls_register_as_well)
{
	long mask[16 / sizeof(long)] = { LAB_METHOD(LAB_GET) };
	uint8_t oui[3] = { 1, 2, 3 };
	int fd = lab_open(1);

	assert_int_equal(umad_register(fd, UMAD_CLASS_PERF_MGMT, 1, 0, mask), 0);
	assert_int_equal(umad_register(fd, UMAD_CLASS_PERF_MGMT, 1, 0, mask), -EPERM);
	assert_int_equal(umad_register(fd, UMAD_CLASS_SUBN_DIRECTED_ROUTE, 1, 0, NULL), 1);
	assert_int_equal(umad_register_oui(fd, LAB_CLASS, 1, oui, mask), 2);
	assert_int_equal(umad_register_oui(fd, LAB_CLASS, 1, oui, mask), -EPERM);
	assert_int_equal(umad_register_oui(fd, UMAD_CLASS_PERF_MGMT, 1, oui, mask), -EINVAL);
}

LAB_CASE(an_agent_that_is_not_there_cannot_be_unregistered)
{
	int fd = lab_open(1), agent = lab_agent(fd, 0);

	assert_int_equal(umad_unregister(fd, agent), 0);
	errno = 0;
	assert_int_equal(umad_unregister(fd, agent), -1);
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_int_equal(umad_unregister(fd, UMAD_CA_MAX_AGENTS), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(umad_unregister(fd, -1), -1);
}

LAB_CASE(a_descriptor_that_is_no_port_is_refused)
{
	long mask[16 / sizeof(long)] = { 0 };

	assert_int_equal(umad_register(0, UMAD_CLASS_PERF_MGMT, 1, 0, mask), -EPERM);
	assert_int_equal(umad_register(-1, UMAD_CLASS_PERF_MGMT, 1, 0, mask), -EPERM);
	expect_refused(-1, &perf, EBADF);
	assert_int_equal(umad_unregister(-1, 0), -1);
}
