/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules of faults: see faults.h.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/reason.h"
#include "cli/base/exit.h"
#include "cli/base/fabrics.h"
#include "cli/fabric/faults.h"
#include "cli/base/json.h"
#include "control/client.h"

int cli_fault_add(struct control_client *client, const char *rule, unsigned *number)
{
	struct control_fault_reply rep = { 0 };
	struct control_fault req = { 0 };
	char why[BASE_REASON_MAX];
	int ret;

	if (strlen(rule) >= sizeof(req.rule)) {
		base_log("a rule has at most %zu bytes", sizeof(req.rule) - 1);
		return CLI_USAGE;
	}
	strcpy(req.rule, rule);
	ret = control_ask(client, CONTROL_ADD_FAULT, &req, &rep);
	*number = rep.number;
	if (!ret)
		return 0;
	base_reason_take(ret, why);
	if (*why)
		base_log("%s", why);
	else if (ret == -ENOSPC)
		base_log("there are too many rules already");
	else
		base_log("cannot add the rule '%s': %s", rule, cli_refusal(ret));
	return ret == -EINVAL ? CLI_USAGE : CLI_FAILED;
}

static int read_lines(struct control_client *client, FILE *from, const char *path)
{
	char line[1024];
	unsigned n = 0, number;

	while (fgets(line, sizeof(line), from)) {
		const char *rule = line + strspn(line, " \t");

		n++;
		line[strcspn(line, "\n")] = '\0';
		if (!*rule || *rule == '#')
			continue;
		if (cli_fault_add(client, rule, &number)) {
			base_log("'%s', line %u, is no rule of faults", path, n);
			return CLI_FABRIC_FAILED;
		}
	}
	return 0;
}

int cli_faults_read(const char *fabric, const char *path)
{
	FILE *from = fopen(path, "re");
	struct control_client *client;
	int ret;

	if (!from) {
		base_log("cannot read '%s': %s", path, strerror(errno));
		return CLI_FABRIC_FAILED;
	}
	ret = cli_connect(&client, fabric) ? CLI_FABRIC_FAILED : 0;
	if (!ret) {
		ret = read_lines(client, from, path);
		control_close(client);
	}
	fclose(from);
	return ret;
}

int cli_faults_each(const char *fabric, void (*tell)(void *arg, const char *rule, long fired),
                    void *arg)
{
	struct control_client *client;
	struct json_object *faults;
	int ret;

	if (cli_connect(&client, fabric))
		return CLI_FABRIC_FAILED;
	faults = cli_request_json(client, "faults");
	for (size_t i = 0; faults && i < json_object_array_length(faults); i++) {
		struct json_object *rule = json_object_array_get_idx(faults, i);

		tell(arg, cli_json_text(rule, "rule"), cli_json_number(rule, "fired"));
	}
	ret = faults ? 0 : CLI_FABRIC_FAILED;
	json_object_put(faults);
	control_close(client);
	return ret;
}
