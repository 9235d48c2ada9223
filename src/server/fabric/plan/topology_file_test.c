/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Topology files: a file that ibnetdiscover writes or ibsim reads becomes that fabric; an error
 * names its line; and no text does harm.
 */
#include <harness.h>

#include "fabric/testing.h"

#include "fabric/plan/topology_file.h"

/* Parses the text in memory that ends where the text does. */
static int parse_bytes(struct fabric_plan *plan, const char *text, size_t bytes, char *why,
                       size_t len)
{
	struct fabric_topology_file file = { .name = "net", .bytes = bytes };
	char *copy = malloc(bytes ? bytes : 1);
	int ret;

	assert_non_null(copy);
	memcpy(copy, text, bytes);
	file.text = copy;
	fabric_plan_init(plan);
	strcpy(why, "");
	ret = fabric_topology_parse(plan, &file, why, len);
	free(copy);
	return ret;
}

static void parse(struct fabric_plan *plan, const char *text)
{
	char why[256];
	int ret = parse_bytes(plan, text, strlen(text), why, sizeof(why));

	if (ret)
		print_error("%s\n", why);
	assert_int_equal(ret, 0);
}

static void assert_refused(const char *text, const char *want)
{
	struct fabric_plan plan;
	char why[256];

	assert_int_equal(parse_bytes(&plan, text, strlen(text), why, sizeof(why)), -EINVAL);
	assert_string_equal(why, want);
	fabric_plan_fini(&plan);
}

static void assert_linked(const struct fabric_plan *plan, unsigned a, unsigned pa, unsigned b,
                          unsigned pb)
{
	assert_int_equal(plan->node[a].port[pa].peer_node, b);
	assert_int_equal(plan->node[a].port[pa].peer_port, pb);
	assert_int_equal(plan->node[b].port[pb].peer_node, a);
	assert_int_equal(plan->node[b].port[pb].peer_port, pa);
}

static unsigned links(const struct fabric_plan *plan)
{
	unsigned n = 0;

	for (unsigned i = 0; i < plan->n_nodes; i++)
		for (unsigned k = 1; k <= plan->node[i].n_ports; k++)
			n += plan->node[i].port[k].peer_node != FABRIC_UNLINKED;
	assert_int_equal(n % 2, 0);
	return n / 2;
}

/* ---- what is read ---- */

/* As ibnetdiscover of rdma-core 44 prints it. */
static const char discovered[] =
        "#\n"
        "# Topology file: generated on Thu Jan  1 00:00:00 2026\n"
        "#\n"
        "# Initiated from node 0002c903000e8b40 port 0002c903000e8b41\n"
        "\n"
        "vendid=0x2c9\n"
        "devid=0xbd36\n"
        "sysimgguid=0x2c90200423ab3\n"
        "switchguid=0x2c90200423ab0(2c90200423ab0)\n"
        "Switch\t36 \"S-0002c90200423ab0\"\t\t# \"core \"A\" 1\" enhanced port 0 lid 3 lmc 0\n"
        "[1]\t\"H-0002c903000e8b40\"[1](2c903000e8b41) \t\t# \"node1 HCA-1\" lid 4 4xQDR\n"
        "[2]\t\"H-0002c903000e8b50\"[1](2c903000e8b51) \t\t# \"node1 HCA-2\" lid 5 4xFDR10\n"
        "[19]\t\"S-0002c90200423ac0\"[20]\t\t# \"core B 2\" lid 7 12xDDR\n"
        "[20]\t\"S-0002c90200423ac0\"[19]\t\t# \"core B 2\" lid 7 12xDDR\n"
        "\n"
        "vendid=0x2c9\n"
        "devid=0xbd36\n"
        "switchguid=0x2c90200423ac0(2c90200423ac1)\n"
        "Switch\t36 \"S-0002c90200423ac0\"\t\t# \"core B 2\" base port 0 lid 7 lmc 0\n"
        "[1]\t\"H-0002c903000e8b40\"[2](2c903000e8b42) \t\t# \"node1 HCA-1\" lid 9 1xHDR\n"
        "[3]\t\"R-0002c903000e8b60\"[1](2c903000e8b61) \t\t# \"router\" lid 10 4xEDR\n"
        "[19]\t\"S-0002c90200423ab0\"[20]\t\t# \"core \"A\" 1\" lid 3 12xDDR\n"
        "[20]\t\"S-0002c90200423ab0\"[19]\t\t# \"core \"A\" 1\" lid 3 12xDDR\n"
        "\n"
        "vendid=0x2c9\n"
        "devid=0x673c\n"
        "sysimgguid=0x2c903000e8b43\n"
        "caguid=0x2c903000e8b40\n"
        "Ca\t2 \"H-0002c903000e8b40\"\t\t# \"node1 HCA-1\"\n"
        "[1](2c903000e8b41) \t\"S-0002c90200423ab0\"[1]\t\t# lid 4 lmc 0 \"core \"A\" 1\" lid 3 "
        "4xQDR\n"
        "[2](2c903000e8b42) \t\"S-0002c90200423ac0\"[1]\t\t# lid 9 lmc 0 \"core B 2\" lid 7 1xHDR\n"
        "\n"
        "caguid=0x2c903000e8b50\n"
        "Ca\t2 \"H-0002c903000e8b50\"\t\t# \"node1 HCA-2\"\n"
        "[1](2c903000e8b51) \t\"S-0002c90200423ab0\"[2]\t\t# lid 5 lmc 0 \"core \"A\" 1\" lid 3 "
        "4xFDR10 s=4 w=2 v=5\n"
        "\n"
        "rtguid=0x2c903000e8b60\n"
        "Rt\t1 \"R-0002c903000e8b60\"\t\t# \"router\"\n"
        "[1](2c903000e8b61) \t\"S-0002c90200423ac0\"[3]\t\t# lid 10 lmc 0 \"core B 2\" lid 7 "
        "4xEDR\n";

CASE(what_ibnetdiscover_prints_is_read)
{
	struct fabric_plan p;

	parse(&p, discovered);
	assert_int_equal(p.n_switches, 2);
	assert_int_equal(p.n_hcas, 3);
	assert_int_equal(p.n_hosts, 2);
	assert_int_equal(links(&p), 6);
	assert_linked(&p, 0, 1, 2, 1);
	assert_linked(&p, 0, 2, 3, 1);
	assert_linked(&p, 0, 19, 1, 20);
	assert_linked(&p, 0, 20, 1, 19);
	assert_linked(&p, 1, 1, 2, 2);
	assert_linked(&p, 1, 3, 4, 1);
	fabric_plan_fini(&p);
}

CASE(nodes_are_described_as_in_the_file)
{
	struct fabric_plan p;

	parse(&p, discovered);
	assert_string_equal(p.node[0].desc, "core \"A\" 1");
	assert_string_equal(p.node[0].name, "core");
	assert_string_equal(p.node[1].name, "core-2");
	assert_string_equal(p.node[2].desc, "node1 HCA-1");
	assert_string_equal(p.node[2].name, "umbel_node1_0");
	assert_string_equal(p.node[3].name, "umbel_node1_1");
	assert_int_equal(p.node[0].vendor_id, 0x2C9);
	assert_int_equal(p.node[0].device_id, 0xBD36);
	/* the lines about one node do not apply to the next */
	assert_int_equal(p.node[3].vendor_id, FABRIC_VENDOR_ID);
	assert_true(p.node[0].enhanced_port0);
	assert_false(p.node[1].enhanced_port0);
	assert_string_equal(p.host[0].name, "node1");
	assert_string_equal(p.host[1].name, "router");
	assert_true(p.node[4].is_router);
	assert_false(p.node[3].is_router);
	fabric_plan_fini(&p);
}

CASE(devices_have_the_names_that_linux_gave_them)
{
	struct fabric_plan p;

	parse(&p, "Ca 1 \"a\" # \"node1 mlx5_0\"\n"
	          "Ca 1 \"b\" # \"node1 mlx5_1\"\n"
	          "Ca 1 \"c\" # \"node1  mlx5_1\"\n" /* so another node1 */
	          "Ca 1 \"d\" # \"node2 HCA-1\"\n"
	          "Ca 1 \"e\" # \"node3 umbel_h9_0\"\n"
	          "Ca 1 \"f\" # \"node4 a_name_of_19_bytes_\"\n"
	          "Ca 1 \"g\" # \"node5 a_name_of_20_bytes__\"\n");
	assert_string_equal(p.node[0].device, "mlx5_0");
	assert_string_equal(p.node[0].name, "node1.mlx5_0");
	assert_string_equal(p.node[1].name, "node1.mlx5_1");
	assert_int_equal(p.node[1].host, 0);
	assert_string_equal(p.node[2].device, "mlx5_1");
	assert_string_equal(p.node[2].name, "node1-2.mlx5_1");
	assert_string_equal(p.node[2].desc, "node1  mlx5_1");
	assert_string_equal(p.node[3].device, "umbel_node2_0");
	assert_string_equal(p.node[4].device, "umbel_node3_0");
	assert_string_equal(p.node[5].device, "a_name_of_19_bytes_");
	assert_string_equal(p.node[6].device, "umbel_node5_0");
	fabric_plan_fini(&p);
}

CASE(hcas_say_what_the_file_says_that_they_are)
{
	struct fabric_plan p;

	parse(&p, "vendid=0x2c9\ndevid=0x1017\nfwver=16.35.2000\nboardid=MT_0000000012\n"
	          "Ca 1 \"a\"\n"
	          "vendid=0x66a\ndevid=0x7322\ncatype=InfiniPath_QLE7\nCa 1 \"b\"\n"
	          "Ca 1 \"c\"\n");
	assert_string_equal(p.node[0].type_name, "MT4119");
	assert_string_equal(p.node[0].fw_ver, "16.35.2000");
	assert_string_equal(p.node[0].board_id, "MT_0000000012");
	assert_int_equal(p.node[1].vendor_id, 0x66A);
	assert_string_equal(p.node[1].type_name, "InfiniPath_QLE7");
	assert_string_equal(p.node[1].fw_ver, "0.1.0");
	assert_int_equal(p.node[2].vendor_id, FABRIC_VENDOR_ID);
	assert_string_equal(p.node[2].type_name, "Umbel");
	fabric_plan_fini(&p);
}

CASE(guids_are_those_of_the_file)
{
	struct fabric_plan p;

	parse(&p, discovered);
	assert_true(p.node[0].guid == 0x2c90200423ab0);
	assert_true(p.node[0].system_guid == 0x2c90200423ab3);
	assert_true(p.node[1].system_guid == 0x2c90200423ac0); /* not said: the node's */
	assert_true(p.node[1].port[0].guid == 0x2c90200423ac1);
	assert_true(p.node[2].guid == 0x2c903000e8b40);
	assert_true(p.node[2].port[2].guid == 0x2c903000e8b42);
	assert_true(p.node[3].port[2].guid == 0x2c903000e8b52); /* not linked: not said */
	fabric_plan_fini(&p);
}

CASE(links_have_the_rate_of_the_file)
{
	struct fabric_plan p;

	parse(&p, discovered);
	assert_int_equal(p.node[0].port[1].rate.width, FABRIC_WIDTH_4X);
	assert_int_equal(p.node[0].port[1].rate.speed, FABRIC_SPEED_QDR);
	assert_int_equal(p.node[0].port[2].rate.speed, FABRIC_SPEED_FDR10);
	assert_int_equal(p.node[1].port[20].rate.width, FABRIC_WIDTH_12X);
	assert_int_equal(p.node[1].port[20].rate.speed, FABRIC_SPEED_DDR);
	assert_int_equal(p.node[2].port[2].rate.width, FABRIC_WIDTH_1X);
	assert_int_equal(p.node[2].port[2].rate.speed, FABRIC_SPEED_HDR);
	fabric_plan_fini(&p);
}

CASE(a_link_whose_ends_differ_has_the_slower_rate)
{
	struct fabric_plan p;

	parse(&p, "Switch 2 \"s\"\n"
	          "[1] \"a\"[1] # \"a\" lid 1 12xQDR\n"
	          "[2] \"b\"[1] # \"b\" lid 1 4x???\n"
	          "Ca 1 \"a\"\n"
	          "[1] \"s\"[1] # lid 1 lmc 0 \"s\" lid 2 4xEDR\n"
	          "Ca 1 \"b\"\n"
	          "[1] \"s\"[2] # lid 1 lmc 0 \"s\" lid 2 8xDDR\n");
	assert_int_equal(p.node[0].port[1].rate.width, FABRIC_WIDTH_4X);
	assert_int_equal(p.node[0].port[1].rate.speed, FABRIC_SPEED_QDR);
	assert_int_equal(p.node[0].port[2].rate.width, FABRIC_WIDTH_4X);
	assert_int_equal(p.node[0].port[2].rate.speed, FABRIC_SPEED_DDR);
	fabric_plan_fini(&p);
}

CASE(the_short_form_of_ibsim_is_read)
{
	struct fabric_plan p;

	parse(&p, "Switch\t8 \"Switch1\"\n"
	          "[1]\t\"Hca1\"[1]\n"
	          "[3]\t\"Switch2\" [3]\tw=12\n"
	          "[5]\t\"Switch1\"[6]\n"
	          "[6]\t\"Switch1\"[5]\n"
	          "\n"
	          "Switch 8 \"Switch2\"\r\n"
	          "[3]\t\"Switch1\"[3] w=12 s=7 e=2 # twelve lanes\r\n"
	          "\r\n"
	          "Hca\t2 \"Hca1\"\n"
	          "[1]\t\"Switch1\"[1]");
	assert_int_equal(links(&p), 3);
	assert_linked(&p, 0, 1, 2, 1);
	assert_linked(&p, 0, 3, 1, 3);
	assert_linked(&p, 0, 5, 0, 6);
	assert_int_equal(p.node[0].port[3].rate.width, FABRIC_WIDTH_12X);
	assert_int_equal(p.node[0].port[3].rate.speed, FABRIC_SPEED_EDR);
	assert_string_equal(p.node[1].name, "Switch2");
	assert_string_equal(p.node[1].desc, "Switch2");
	assert_string_equal(p.host[0].name, "Hca1");
	fabric_plan_fini(&p);
}

CASE(options_of_ibsim_are_rates)
{
	static const struct {
		const char *option;
		uint8_t width, speed;
	} rows[] = {
		{ "", FABRIC_WIDTH_4X, FABRIC_SPEED_EDR },
		{ "w=1", FABRIC_WIDTH_1X, FABRIC_SPEED_EDR },
		{ "w=2", FABRIC_WIDTH_2X, FABRIC_SPEED_EDR },
		{ "w=8", FABRIC_WIDTH_8X, FABRIC_SPEED_EDR },
		{ "s=1", FABRIC_WIDTH_4X, FABRIC_SPEED_SDR },
		{ "s=2", FABRIC_WIDTH_4X, FABRIC_SPEED_DDR },
		{ "s=3", FABRIC_WIDTH_4X, FABRIC_SPEED_DDR },
		{ "s=4", FABRIC_WIDTH_4X, FABRIC_SPEED_QDR },
		{ "s=5", FABRIC_WIDTH_4X, FABRIC_SPEED_QDR },
		{ "s=6", FABRIC_WIDTH_4X, FABRIC_SPEED_QDR },
		{ "s=7 e=0", FABRIC_WIDTH_4X, FABRIC_SPEED_QDR },
		{ "e=1", FABRIC_WIDTH_4X, FABRIC_SPEED_FDR },
		{ "e=2", FABRIC_WIDTH_4X, FABRIC_SPEED_EDR },
		{ "e=3 s=7", FABRIC_WIDTH_4X, FABRIC_SPEED_EDR },
		{ "e=4", FABRIC_WIDTH_4X, FABRIC_SPEED_HDR },
		{ "e=7", FABRIC_WIDTH_4X, FABRIC_SPEED_HDR },
		{ "s=4 e=8", FABRIC_WIDTH_4X, FABRIC_SPEED_NDR },
		{ "e=0xF w=0xC", FABRIC_WIDTH_12X, FABRIC_SPEED_NDR },
	};

	for (size_t i = 0; EACH_ROW(i, rows); i++) {
		struct fabric_plan p;
		char text[128];

		snprintf(text, sizeof(text), "Ca 1 \"a\"\n[1] \"b\"[1] %s\nCa 1 \"b\"\n",
		         rows[i].option);
		parse(&p, text);
		assert_int_equal(p.node[1].port[1].rate.width, rows[i].width);
		assert_int_equal(p.node[1].port[1].rate.speed, rows[i].speed);
		fabric_plan_fini(&p);
	}
}

/* ibsim connects the other end too. */
CASE(one_end_of_a_link_is_enough)
{
	struct fabric_plan p;

	parse(&p, "Switch 4 \"s\"\n[2] \"a\"[1](1234)\nCa 1 \"a\"\n");
	assert_linked(&p, 0, 2, 1, 1);
	assert_true(p.node[1].port[1].guid == 0x1234);
	fabric_plan_fini(&p);
}

CASE(lines_between_chassis_are_ignored)
{
	struct fabric_plan p;

	parse(&p,
	      "Chassis 1 (guid 0x66a000d000001)\nHostname: rack\n\n# Spine Nodes\n"
	      "vendid=0x66a\nsysimgguid=0x66a000d000001\t\t# Chassis 1\n"
	      "switchguid=0x66a000600000a(66a000600000a)\t# spine slot 1\n"
	      "Switch\t24 \"S-00066a000600000a\"\t\t# spine base port 0 lid 1 lmc 0\n"
	      "[2][ext 7]\t\"H-00066a000600000b\"[1][ext 1](66a000600000c) \t# \"x\" lid 2 4xSDR\n"
	      "\nNon-Chassis Nodes\n"
	      "Ca\t1 \"H-00066a000600000b\"\t\t# \"x\" (scp)\n"
	      "[1](66a000600000c)\t\"S-00066a000600000a\"[2][ext 7] \t# lid 2 lmc 0 \"s\" lid 1 "
	      "4xSDR slot 3\n");
	assert_linked(&p, 0, 2, 1, 1);
	assert_string_equal(p.node[0].name, "spine");
	assert_string_equal(p.node[1].desc, "x");
	assert_int_equal(p.node[0].port[2].rate.speed, FABRIC_SPEED_SDR);
	fabric_plan_fini(&p);
}

CASE(a_node_that_has_but_a_guid_is_named_by_its_number)
{
	struct fabric_plan p;

	parse(&p, "Switch 4 \"S-0002c90200423ab0\"\n"
	          "Ca 1 \"H-0002c903000e8b40\"\n"
	          "Ca 1 \"H-0002c903000e8b50\" # \"\"\n");
	assert_string_equal(p.node[0].name, "sw1");
	assert_string_equal(p.host[0].name, "h1");
	assert_string_equal(p.host[1].name, "h2");
	assert_true(p.node[0].guid == 0x0002c90200423ab0);
	assert_true(p.node[1].guid == 0x0002c903000e8b40);
	fabric_plan_fini(&p);
}

CASE(hcas_with_the_same_description_are_of_different_hosts)
{
	struct fabric_plan p;

	parse(&p, "Ca 1 \"1\" # \"node mlx5_0\"\n"
	          "Ca 1 \"2\" # \"node mlx5_1\"\n"
	          "Ca 1 \"3\" # \"node mlx5_0\"\n"
	          "Ca 1 \"4\" # \"node mlx5_1\"\n"
	          "Ca 1 \"5\" # \"MT25408 ConnectX Mellanox Technologies\"\n"
	          "Ca 1 \"6\" # \"MT25408 ConnectX Mellanox Technologies\"\n"
	          "Ca 1 \"7\" # \"other\"\n"
	          "Ca 1 \"8\" # \"other\"\n");
	static const struct {
		unsigned host;
		const char *name;
	} want[] = {
		{ 0, "node" },    { 0, "node" },      { 1, "node-2" }, { 1, "node-2" },
		{ 2, "MT25408" }, { 3, "MT25408-2" }, { 4, "other" },  { 5, "other-2" },
	};

	for (unsigned i = 0; EACH_ROW(i, want); i++) {
		assert_int_equal(p.node[i].host, want[i].host);
		assert_string_equal(p.host[p.node[i].host].name, want[i].name);
	}
	fabric_plan_fini(&p);
}

CASE(islands_and_switches_without_hosts_are_read)
{
	struct fabric_plan p;

	parse(&p, "Switch 4 \"a\"\n[1] \"h\"[1]\nSwitch 4 \"b\"\nSwitch 4 \"c\"\n[1] \"d\"[4]\n"
	          "Switch 4 \"d\"\n[4] \"c\"[1]\nHca 1 \"h\"\n[1] \"a\"[1]\nHca 1 \"alone\"\n");
	assert_int_equal(p.n_switches, 4);
	assert_int_equal(p.n_hosts, 2);
	assert_int_equal(links(&p), 2);
	fabric_plan_fini(&p);
}

/* ---- what is not ---- */

CASE(a_line_that_does_not_parse_is_named)
{
	static const char *const rows[][2] = {
		{ "Switch1 4", "net:1: expected the node's identifier in quotes, found '4'" },
		{ "\n\nBridge 4 \"x\"", "net:3: expected Switch, Ca, Hca, Rt, an identifier or a "
		                        "port, found 'Bridge 4 \"x\"'" },
		{ "Switch", "net:1: expected a number of ports from 1 to 254, found the end of the "
		            "line" },
		{ "Switch 0 \"s\"", "net:1: expected a number of ports from 1 to 254, found '0 "
		                    "\"s\"'" },
		{ "Switch 255 \"s\"", "net:1: expected a number of ports from 1 to 254, found '255 "
		                      "\"s\"'" },
		{ "Switch 99999999999999999999999 \"s\"",
		  "net:1: expected a number of ports from 1 to 254, found "
		  "'99999999999999999999999 \"s\"'" },
		{ "Ca 2", "net:1: expected the node's identifier in quotes, found the end of the "
		          "line" },
		{ "Ca 2 \"\"", "net:1: expected the node's identifier in quotes, found '\"\"'" },
		{ "Ca 2 \"x", "net:1: expected the node's identifier in quotes, found '\"x'" },
		{ "Ca 2 \"x\" y", "net:1: expected the end of the line or a comment, found 'y'" },
		{ "[1] \"x\"[1]", "net:1: expected a node before its ports, found '[1] \"x\"[1]'" },
		{ "Ca 2 \"x\"\n[0] \"y\"[1]",
		  "net:2: expected a port number from 1 to 2, found '0] "
		  "\"y\"[1]'" },
		{ "Ca 2 \"x\"\n[3] \"y\"[1]",
		  "net:2: expected a port number from 1 to 2, found '3] "
		  "\"y\"[1]'" },
		{ "Ca 2 \"x\"\n[1 \"y\"[1]", "net:2: expected ']', found ' \"y\"[1]'" },
		{ "Ca 2 \"x\"\n[1]", "net:2: expected the other node's identifier in quotes, found "
		                     "the end of the line" },
		{ "Ca 2 \"x\"\n[1] \"y\"", "net:2: expected '[' and the other node's port, found "
		                           "the end of the line" },
		{ "Ca 2 \"x\"\n[1] \"y\"[0]", "net:2: expected a port number from 1 to 254, found "
		                              "'0]'" },
		{ "Ca 2 \"x\"\n[1](xyz) \"y\"[1]",
		  "net:2: expected a GUID of up to 16 hex digits, found 'xyz) \"y\"[1]'" },
		{ "Ca 2 \"x\"\n[1](12345678901234567) \"y\"[1]",
		  "net:2: expected a GUID of up to 16 hex digits, found '12345678901234567) "
		  "\"y\"[1]'" },
		{ "Ca 2 \"x\"\n[1] \"y\"[1] w=3", "net:2: expected 1, 2, 4, 8 or 12 lanes, found "
		                                  "'3'" },
		{ "Ca 2 \"x\"\n[1] \"y\"[1] s=8",
		  "net:2: expected a speed from 1 to 7, found '8'" },
		{ "Ca 2 \"x\"\n[1] \"y\"[1] e=", "net:2: expected a speed from 0 to 15, found the "
		                                 "end of the line" },
		{ "Ca 2 \"x\"\n[1] \"y\"[1] s=0",
		  "net:2: expected a speed from 1 to 7, found '0'" },
		{ "Ca 2 \"x\"\n[1] \"y\"[1] e=16",
		  "net:2: expected a speed from 0 to 15, found '16'" },
		{ "Ca 2 \"x\"\n[1] \"y\"[1] w=1 w 4",
		  "net:2: expected w=, s=, e=, a comment or the end of the line, found 'w 4'" },
		{ "Ca 2 \"x\"\n[1] \"y\"[1] z=1",
		  "net:2: expected w=, s=, e=, a comment or the end of the line, found 'z=1'" },
		{ "vendid=0x1000000", "net:1: expected a vendor ID of 24 bits, found '0x1000000'" },
		{ "devid=-1", "net:1: expected a device ID of 16 bits, found '-1'" },
		{ "caguid=0x", "net:1: expected a GUID: 0x and up to 16 hex digits, found '0x'" },
		{ "switchguid=0x1(2", "net:1: expected ')', found the end of the line" },
		{ "fwver=0123456789abcdef",
		  "net:1: expected a word of 1 to 15 characters, found '0123456789abcdef'" },
		{ "boardid=",
		  "net:1: expected a word of 1 to 15 characters, found the end of the line" },
		{ "devid=0x1 7", "net:1: expected the end of the line, found '7'" },
		{ "include \"other\"", "net:1: expected Switch, Ca, Hca, Rt, an identifier or a "
		                       "port, found 'include \"other\"'" },
		{ "a line that is much longer than what is worth to be printed",
		  "net:1: expected Switch, Ca, Hca, Rt, an identifier or a port, found 'a line "
		  "that "
		  "is much longer th...'" },
	};

	for (size_t i = 0; EACH_ROW(i, rows); i++)
		assert_refused(rows[i][0], rows[i][1]);
}

CASE(links_that_do_not_fit_are_refused_by_their_line)
{
	static const char *const rows[][2] = {
		{ "Ca 1 \"a\"\n[1] \"b\"[1]", "net:2: expected a node of this file, found \"b\"" },
		{ "Ca 1 \"a\"\n[1] \"b\"[2]\nCa 1 \"b\"",
		  "net:2: expected a port of \"b\", from 1 to 1, found 2" },
		{ "Ca 2 \"a\"\n[1] \"b\"[1]\n[1] \"b\"[2]\nCa 2 \"b\"",
		  "net:3: expected a port that is not linked yet, found '[1] \"b\"[2]'" },
		{ "Ca 2 \"a\"\n[1] \"b\"[1]\n[2] \"b\"[1]\nCa 2 \"b\"",
		  "net:3: expected a port that is free, found \"b\"[1]" },
		{ "Ca 2 \"a\"\n[1] \"a\"[1]",
		  "net:2: expected a port that is free, found \"a\"[1]" },
		{ "Ca 2 \"a\"\n[1] \"b\"[1]\nCa 2 \"b\"\n[1] \"a\"[2]",
		  "net:2: expected the other end of line 4's link, \"a\"[2], found \"a\"[1]" },
		{ "Ca 2 \"a\"\n[1] \"b\"[1]\nCa 2 \"b\"\n[1] \"c\"[1]\nCa 2 \"c\"\n[1] \"b\"[1]",
		  "net:2: expected the other end of line 4's link, \"c\"[1], found \"a\"[1]" },
		{ "Switch 2 \"s\"\n[1] \"a\"[1](10)\nCa 1 \"a\"\n[1](11) \"s\"[1]",
		  "net:2: expected the other port's GUID, 0x11, found 0x10" },
	};

	for (size_t i = 0; EACH_ROW(i, rows); i++)
		assert_refused(rows[i][0], rows[i][1]);
}

CASE(nodes_that_do_not_fit_are_refused_by_their_line)
{
	static const char *const rows[][2] = {
		{ "Ca 1 \"a\"\nCa 1 \"b\"\nSwitch 1 \"a\"",
		  "net:3: expected a new node, found 'a' of line 1" },
		{ "caguid=0x10\nCa 1 \"a\"\ncaguid=0x10\nCa 1 \"b\"",
		  "net:4: GUID 0x0000000000000010 of 'umbel_b_0' is also that of 'umbel_a_0'" },
		{ "Switch 1 \"a\"\n", "net:1: there is no host" },
		{ "# nothing\n", "net:1: there is no host" },
		{ "", "net:0: there is no host" },
	};

	for (size_t i = 0; EACH_ROW(i, rows); i++)
		assert_refused(rows[i][0], rows[i][1]);
}

/* @n lines, each by @format and its number. */
static void assert_too_many(const char *format, unsigned n, const char *want)
{
	struct fabric_plan plan;
	char why[256], *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	assert_non_null(to);
	for (unsigned i = 0; i < n; i++)
		fprintf(to, format, i); /* NOLINT: the formats are below */
	fclose(to);
	assert_int_equal(parse_bytes(&plan, text, bytes, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, want);
	fabric_plan_fini(&plan);
	free(text);
}

CASE(more_than_there_can_be_is_refused)
{
	assert_too_many("Ca 1 \"%u\"\n", 49152,
	                "net:49152: more than 49151 nodes or 1048576 ports");
	assert_too_many(
	        "Ca 254 \"%u\"\n", 4000,
	        "net:194: more than 49151 hosts, 256 ports of a host, or 49151 HCA ports and "
	        "switches");
	assert_too_many("Switch 1 \"%u\"\n", 60000,
	                "net:49152: more than 49151 nodes or 1048576 ports");
	assert_too_many("Switch 254 \"%u\"\n", 20000,
	                "net:4129: more than 49151 nodes or 1048576 ports");
}

/* ---- what is passed over ---- */

#define MESSAGES                                                                      \
	"src/query_smp.c:195; umad (DR path slid 0; dlid 0) bad status 110; \t and\n" \
	"Switch 4 \"s\"\n"                                                            \
	"ibwarn: [7] mad_rpc_open_port: can't open UMAD port\n"                       \
	"[1] \"a\"[1]\n"                                                              \
	"Ca 1 \"a\"\n"                                                                \
	"[1] \"s\"[1]\n"

/* Parses, with room for @room bytes of notes. */
static int parse_noted(const char *text, char *notes, size_t room)
{
	struct fabric_topology_file file = { .name = "net",
		                             .text = text,
		                             .bytes = strlen(text),
		                             .notes = notes,
		                             .notes_len = room };
	struct fabric_plan plan;
	char why[160] = "";
	int ret;

	fabric_plan_init(&plan);
	ret = fabric_topology_parse(&plan, &file, why, sizeof(why));
	if (!ret)
		assert_int_equal(plan.n_nodes, 2);
	fabric_plan_fini(&plan);
	return ret;
}

CASE(messages_of_programs_are_named_and_passed_over)
{
	char notes[256], few[40];

	assert_int_equal(parse_noted(MESSAGES, notes, sizeof(notes)), 0);
	assert_string_equal(
	        notes, "net:1: passed over: src/query_smp.c:195; umad (DR path slid 0; dlid 0) bad "
	               "status 11\n"
	               "net:3: passed over: ibwarn: [7] mad_rpc_open_port: can't open UMAD port\n");
	assert_int_equal(parse_noted(MESSAGES, few, sizeof(few)), 0);
	assert_int_equal(strlen(few), sizeof(few) - 1);
	assert_int_equal(parse_noted(MESSAGES, NULL, 0), 0);
	/* a line that does not begin like a message is refused */
	assert_int_equal(parse_noted(MESSAGES "Swich 4 \"t\": x\n", notes, sizeof(notes)), -EINVAL);
	assert_int_equal(parse_noted(MESSAGES ": x\n", notes, sizeof(notes)), -EINVAL);
}

/* ---- there and back ---- */

static void print_node(FILE *to, const struct fabric_plan *p, const struct fabric_plan_node *n)
{
	bool is_switch = n->type == FABRIC_SWITCH;

	fprintf(to, "\nsysimgguid=0x%llx\n", (unsigned long long)n->system_guid);
	fprintf(to, "%sguid=0x%llx", is_switch ? "switch" : "ca", (unsigned long long)n->guid);
	if (is_switch)
		fprintf(to, "(%llx)", (unsigned long long)n->port[0].guid);
	fprintf(to, "\n%s\t%u \"%c-%016llx\"\t\t# \"%s\"%s\n", is_switch ? "Switch" : "Ca",
	        n->n_ports, is_switch ? 'S' : 'H', (unsigned long long)n->guid, n->desc,
	        is_switch ? " base port 0 lid 1 lmc 0" : "");
	for (unsigned k = 1; k <= n->n_ports; k++) {
		const struct fabric_plan_node *peer;

		if (n->port[k].peer_node == FABRIC_UNLINKED)
			continue;
		peer = &p->node[n->port[k].peer_node];
		fprintf(to, "[%u]", k);
		if (!is_switch)
			fprintf(to, "(%llx) ", (unsigned long long)n->port[k].guid);
		fprintf(to, "\t\"%c-%016llx\"[%u]\t\t# \"%s\" lid 1 4xEDR\n",
		        peer->type == FABRIC_SWITCH ? 'S' : 'H', (unsigned long long)peer->guid,
		        n->port[k].peer_port, peer->desc);
	}
}

static char *printed(const struct fabric_plan *p, size_t *bytes)
{
	char *text = NULL;
	FILE *to = open_memstream(&text, bytes);

	assert_non_null(to);
	for (unsigned i = 0; i < p->n_nodes; i++)
		print_node(to, p, &p->node[i]);
	fclose(to);
	return text;
}

static void assert_same(const struct fabric_plan *p, const struct fabric_plan *q)
{
	assert_int_equal(p->n_nodes, q->n_nodes);
	assert_int_equal(p->n_hosts, q->n_hosts);
	for (unsigned i = 0; i < p->n_hosts; i++)
		assert_string_equal(p->host[i].name, q->host[i].name);
	for (unsigned i = 0; i < p->n_nodes; i++) {
		assert_string_equal(p->node[i].name, q->node[i].name);
		assert_string_equal(p->node[i].desc, q->node[i].desc);
		assert_int_equal(p->node[i].type, q->node[i].type);
		assert_int_equal(p->node[i].host, q->node[i].host);
		assert_int_equal(p->node[i].n_ports, q->node[i].n_ports);
		assert_true(p->node[i].guid == q->node[i].guid);
		assert_memory_equal(p->node[i].port, q->node[i].port,
		                    (p->node[i].n_ports + 1) * sizeof(*p->node[i].port));
	}
}

CASE(a_fabric_that_is_printed_reads_as_the_same)
{
	static const struct fabric_fat_tree shapes[] = { { 2, 8, 0 }, { 3, 4, 11 }, { 3, 24, 0 } };

	for (size_t i = 0; EACH_ROW(i, shapes); i++) {
		struct fabric_plan p, q;
		char why[256], *text;
		size_t bytes;

		fabric_plan_init(&p);
		assert_int_equal(fabric_plan_fat_tree(&p, &shapes[i], why, sizeof(why)), 0);
		text = printed(&p, &bytes);
		assert_int_equal(parse_bytes(&q, text, bytes, why, sizeof(why)), 0);
		assert_same(&p, &q);
		free(text);
		fabric_plan_fini(&p);
		fabric_plan_fini(&q);
	}
}

/* ---- anything at all ---- */

static uint64_t seed = 1;

static unsigned any(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % below;
}

static const char *const scraps[] = {
	"Switch",
	"Ca ",
	"Hca 254 \"x\"\n",
	"[",
	"]",
	"\"",
	"(",
	")",
	"#",
	"=",
	"\n",
	"\r\n",
	"[255]",
	"[1]",
	"caguid=0x",
	"18446744073709551616",
	"-1",
	"99999999999999999999999999999999",
	"\xFF\xFE",
	"w=",
	"[ext 9]",
	"\"S-0002c90200423ab0\"",
	"4xQDR",
	"# \"",
};

static const char plain[] = "Switch\t8 \"Switch1\"\n"
                            "[1]\t\"Hca1\"[1] w=4 s=7\n"
                            "[3]\t\"Switch2\"[3]\n"
                            "[5]\t\"Switch1\"[6]\n"
                            "\nSwitch 8 \"Switch2\"\n"
                            "[3]\t\"Switch1\"[3] e=2\n"
                            "\nHca\t2 \"Hca1\"\n"
                            "[1]\t\"Switch1\"[1]\n";

/* Changes the text a little; its memory has room for it to grow. */
static size_t damage(char *text, size_t bytes, size_t room)
{
	size_t at = any((unsigned)bytes + 1), n;
	const char *scrap;

	switch (any(5)) {
	case 0: /* another byte */
		if (at < bytes)
			text[at] = (char)any(256);
		return bytes;
	case 1: /* cut out */
		n = any(40);
		n = n < bytes - at ? n : bytes - at;
		memmove(text + at, text + at + n, bytes - at - n);
		return bytes - n;
	case 2: /* cut off */
		return any(4) ? bytes : at;
	case 3: /* something from elsewhere in it */
		n = any(120);
		n = n < bytes - at ? n : bytes - at;
		if (bytes + n > room)
			return bytes;
		memmove(text + at + n, text + at, bytes - at);
		memmove(text + at, text + any((unsigned)(bytes + 1)), n);
		return bytes + n;
	default: /* what means something */
		scrap = scraps[any(ARRAY_SIZE(scraps))];
		n = strlen(scrap);
		if (bytes + n > room)
			return bytes;
		memmove(text + at + n, text + at, bytes - at);
		memcpy(text + at, scrap, n);
		return bytes + n;
	}
}

/* Checks the plan: links have two ends, names are valid. */
static void assert_sound(const struct fabric_plan *p)
{
	assert_in_range(p->n_hosts, 1, FABRIC_MAX_HOSTS);
	for (unsigned i = 0; i < p->n_nodes; i++) {
		const struct fabric_plan_node *n = &p->node[i];

		assert_true(*n->name && strlen(n->name) < FABRIC_NAME);
		assert_true(n->guid && n->system_guid);
		for (unsigned k = 1; k <= n->n_ports; k++)
			if (n->port[k].peer_node != FABRIC_UNLINKED)
				assert_linked(p, i, k, n->port[k].peer_node, n->port[k].peer_port);
	}
}

CASE(any_text_is_read_or_refused_in_words)
{
	enum { ROOM = 8192, ROUNDS = 40000 };
	char *text = malloc(ROOM);
	unsigned read = 0, refused = 0;

	assert_non_null(text);
	for (unsigned round = 0; round < ROUNDS; round++) {
		const char *whole = round % 2 ? discovered : plain;
		size_t bytes = strlen(whole);
		struct fabric_plan plan;
		char why[256];

		memcpy(text, whole, bytes);
		for (unsigned n = any(6) + 1; n; n--)
			bytes = damage(text, bytes, ROOM);
		if (parse_bytes(&plan, text, bytes, why, sizeof(why))) {
			assert_true(!strncmp(why, "net:", 4));
			for (const char *p = why; *p; p++)
				assert_true(*p != '\n');
			refused++;
		} else {
			assert_sound(&plan);
			read++;
		}
		fabric_plan_fini(&plan);
	}
	free(text);
	assert_true(read > ROUNDS / 100 && refused > ROUNDS / 100); /* both cases happened */
}

CASE(noise_is_refused)
{
	enum { BYTES = 4096 };
	char *text = malloc(BYTES);

	assert_non_null(text);
	for (unsigned round = 0; round < 200; round++) {
		struct fabric_plan plan;
		char why[256];

		for (unsigned i = 0; i < BYTES; i++)
			text[i] = (char)any(256);
		text[0] = 'x';
		assert_int_equal(parse_bytes(&plan, text, BYTES, why, sizeof(why)), -EINVAL);
		fabric_plan_fini(&plan);
	}
	free(text);
}

CASE(a_complaint_fits_the_room_that_there_is)
{
	struct fabric_plan plan;
	char why[8];

	assert_int_equal(parse_bytes(&plan, "bad", 3, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "net:1: ");
	fabric_plan_fini(&plan);
	assert_int_equal(parse_bytes(&plan, "bad", 3, why, 3), -EINVAL);
	assert_string_equal(why, "ne");
	fabric_plan_fini(&plan);
}
