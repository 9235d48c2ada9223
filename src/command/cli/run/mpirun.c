/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel mpirun`: an MPI program on all hosts of a fabric. It becomes mpirun, of Open MPI or MPICH,
 * on the fabric's first host, and tells it which hosts there are and to reach them by `umbel rsh`.
 */
#define _GNU_SOURCE
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/base/environ.h"
#include "cli/base/fabrics.h"
#include "cli/base/json.h"
#include "cli/base/options.h"

static const char help[] =
        "Usage: umbel mpirun [OPTION]... ARGUMENT...\n"
        "\n"
        "Runs mpirun, of Open MPI or MPICH, on the first host of a fabric whose hosts have a\n"
        "network of their own (umbel up --ipoib). It starts ranks on all hosts in turn, by\n"
        "'umbel rsh'. The arguments are mpirun's: -n 8 ./a.out\n";

/* The first host, and all with commas between; from malloc(). */
struct hosts {
	char *first, *all;
};

static int find_hosts(const char *fabric, struct hosts *h)
{
	struct json_object *hosts;
	size_t bytes;
	FILE *to;
	int ret = cli_ask(fabric, "hosts", &hosts);

	if (ret)
		return ret;
	to = open_memstream(&h->all, &bytes);
	for (size_t i = 0; to && i < json_object_array_length(hosts); i++)
		fprintf(to, "%s%s", i ? "," : "",
		        cli_json_text(json_object_array_get_idx(hosts, i), "name"));
	if (to && !fclose(to) && h->all)
		h->first = strndup(h->all, strcspn(h->all, ","));
	json_object_put(hosts);
	if (h->first)
		return 0;
	base_log("no hosts to run on");
	return CLI_FAILED;
}

/* Whether the program calls itself Open MPI when asked for its version. 0, or the exit status. */
static int is_open_mpi(const char *program, bool *is)
{
	char *command, line[1024];
	FILE *from;
	int ret = -1;

	*is = false;
	if (strchr(program, '\'') || asprintf(&command, "exec '%s' --version 2>&1", program) < 0)
		return CLI_FAILED;
	from = popen(command, "re");
	free(command);
	while (from && fgets(line, sizeof(line), from))
		*is |= strstr(line, "Open MPI") || strstr(line, "OpenRTE");
	if (from)
		ret = pclose(from);
	if (!ret)
		return 0;
	base_log("'%s' does not run: is Open MPI or MPICH installed?", program);
	return CLI_NOT_FOUND;
}

struct setting {
	const char *name, *value;
};

/* Both MPIs send by UCX, which uses shared memory beside RDMA, as hosts are of one machine. MPICH
 * cannot receive pieces that do not end where elements of a datatype do. */
static const struct setting ucx[] = {
	{ "UCX_TLS", "rc_v,self" },
	{ "UCX_RC_VERBS_SEG_SIZE", "8257" },
};

static const struct setting open_mpi[] = {
	{ "OMPI_MCA_plm_rsh_agent", "umbel rsh" },
	{ "PRTE_MCA_plm_ssh_agent", "umbel rsh" },
	{ "OMPI_MCA_rmaps_base_mapping_policy", "node" },
	{ "PRTE_MCA_rmaps_default_mapping_policy", "node:oversubscribe" },
	{ "OMPI_MCA_rmaps_base_oversubscribe", "1" },
	{ "OMPI_MCA_hwloc_base_binding_policy", "none" },
	{ "PRTE_MCA_hwloc_default_binding_policy", "none" },
	/* UCX, on devices of any name. Debian's own settings leave it out; an Open MPI without it
	 * still has the rest to choose from. */
	{ "OMPI_MCA_pml", "^cm" },
	{ "OMPI_MCA_osc", "^monitoring" },
	{ "OMPI_MCA_osc_ucx_priority", "200" },
	{ "OMPI_MCA_opal_common_ucx_tls", "any" },
	{ "OMPI_MCA_opal_common_ucx_devices", "any" },
};

static const struct setting mpich[] = {
	{ "HYDRA_LAUNCHER", "ssh" },
	{ "HYDRA_LAUNCHER_EXEC", "umbel-rsh" },
};

/* The user's own variables in the environment stay. */
static void set_all(const struct setting *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		setenv(s[i].name, s[i].value, 0);
}

/* The command line of mpirun; NULL: no memory. */
static char **make_argv(const char *program, const char *hosts_option, const struct hosts *h,
                        int argc, char **argv)
{
	char **all = calloc((size_t)argc + 4, sizeof(*all));
	int n = 0;

	if (!all)
		return NULL;
	all[n++] = (char *)program;
	all[n++] = (char *)hosts_option;
	all[n++] = h->all;
	memcpy(all + n, argv, (size_t)argc * sizeof(*argv));
	return all;
}

/* Becomes mpirun; returns the exit status if that fails. */
static int run_mpi(const char *fabric, const char *program, int argc, char **argv)
{
	struct hosts h = { NULL, NULL };
	bool is_open = false;
	char **all = NULL;
	int ret = find_hosts(fabric, &h);

	if (!ret)
		ret = cli_environ_set(fabric, h.first);
	if (!ret)
		ret = cli_enter_host(fabric, h.first, true);
	if (!ret)
		ret = is_open_mpi(program, &is_open);
	if (!ret) {
		if (is_open)
			set_all(open_mpi, ARRAY_SIZE(open_mpi));
		else
			set_all(mpich, ARRAY_SIZE(mpich));
		set_all(ucx, ARRAY_SIZE(ucx));
		all = make_argv(program, is_open ? "--host" : "-hosts", &h, argc, argv);
		ret = all ? cli_exec_command(all) : CLI_FAILED;
	}
	free(all);
	free(h.first);
	free(h.all);
	return ret;
}

struct options {
	const char *name, *program;
};

static const struct cli_option options[] = {
	{ "      --name NAME       the fabric (default: $UMBEL_FABRIC, else 'default')\n",
	  CLI_TEXT(struct options, name) },
	{ "      --mpirun PROGRAM  this mpirun (default: mpirun)\n",
	  CLI_TEXT(struct options, program) },
	{ .line = "  -h, --help            this text\n" },
};

static int mpirun_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	const struct options *o = from;

	if (argc < 1)
		return cli_usage_error(self, "what is to run?");
	return run_mpi(cli_fabric_name(o->name), o->program, argc, argv);
}

const struct cli_command cli_mpirun = {
	.name = "mpirun",
	.summary = "run an MPI program on all hosts of a fabric",
	.help = help,
	.help_end = "Exit status: mpirun's.\n",
	CLI_OPTIONS(options, struct options),
	.defaults = &(const struct options){ .program = "mpirun" },
	.passes_on = true,
	.execute = mpirun_execute,
};
