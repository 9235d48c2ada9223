/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measures links (common/link.h) between two processes, in turns: in each turn every
 * link that is named once, with the floor (a cache line there and back) just before and
 * just after it. Prints a line of JSON a sample; bench/run.py calls it and judges.
 *
 * links latency|rate [OPTION]... LINK[:LIST]...
 *
 * With --device the two sides are on network devices of that name, in the network namespaces
 * a and b, each with a fabric of its own.
 */
#include "common/util.h"

#include <getopt.h>

#include "common/measure.h"

#define MAX_LINKS 8

struct plan {
	int rate;
	unsigned turns, exchanges;
	uint32_t bytes;
	struct bench_spec spec;
	unsigned n_links;
	struct {
		const struct bench_link_ops *ops;
		unsigned list;
		void *shared;
	} link[MAX_LINKS];
};

static void print_common(const struct plan *plan, unsigned turn, const struct bench_end *end,
                         const double line[2], uint64_t interrupted)
{
	printf("{\"measure\": \"%s\", \"link\": \"%s\", \"bytes\": %u, \"list\": %u, \"turn\": %u, "
	       "\"line\": [%.1f, %.1f], \"interrupted\": %u, ",
	       plan->rate ? "rate" : "latency", end->ops->name, plan->bytes, end->list, turn,
	       line[0], line[1], (unsigned)interrupted);
}

static void print_latency(const struct bench_latency *l)
{
	printf("\"ns\": %.2f, \"p99\": %.2f, \"quantiles\": [", l->ns, l->p99);
	for (int i = 0; i < BENCH_QUANTILES; i++)
		printf("%s%.1f", i ? ", " : "", l->quantile[i]);
	printf("]}\n");
}

static void print_quantiles(void)
{
	printf("{\"measure\": \"quantiles\", \"at\": [");
	for (int i = 0; i < BENCH_QUANTILES; i++)
		printf("%s%g", i ? ", " : "", bench_quantile_at[i]);
	printf("]}\n");
}

static void measure(const struct plan *plan, unsigned turn, struct bench_end *end)
{
	struct bench_latency latency;
	double line[2], ns = 0;
	uint64_t interrupted;

	line[0] = bench_pair_line(end->pair, end->side);
	interrupted = bench_interrupted();
	if (plan->rate)
		ns = bench_measure_rate(end);
	else
		bench_measure_latency(end, plan->exchanges, &latency);
	interrupted = bench_interrupted() - interrupted;
	line[1] = bench_pair_line(end->pair, end->side);
	if (end->side || !turn)
		return;
	print_common(plan, turn, end, line, interrupted);
	if (plan->rate)
		printf("\"ns\": %.2f}\n", ns);
	else
		print_latency(&latency);
}

static void print_memcpy(const struct plan *plan, unsigned turn)
{
	printf("{\"measure\": \"memcpy\", \"bytes\": %u, \"turn\": %u, \"ns\": %.2f}\n",
	       plan->bytes, turn, bench_measure_memcpy(plan->bytes, plan->spec.depth));
}

static void run(struct bench_pair *pair, int side, void *arg)
{
	struct plan *plan = arg;
	struct bench_end end[MAX_LINKS];

	if (plan->spec.device)
		bench_enter(side ? "b" : "a");
	for (unsigned i = 0; i < plan->n_links; i++) {
		end[i] = (struct bench_end){ .ops = plan->link[i].ops,
			                     .list = plan->link[i].list,
			                     .spec = plan->spec,
			                     .side = side,
			                     .pair = pair };
		end[i].spec.index = i;
		end[i].link = end[i].ops->open(plan->link[i].shared, &end[i].spec, side);
	}
	if (side == 0 && !plan->rate)
		print_quantiles();
	/* Turn 0 is not printed: rings are used for the first time, pages are touched. */
	for (unsigned turn = 0; turn <= plan->turns; turn++) {
		if (turn && plan->rate && side == 0)
			print_memcpy(plan, turn);
		for (unsigned i = 0; i < plan->n_links; i++)
			measure(plan, turn, &end[i]);
	}
	for (unsigned i = 0; i < plan->n_links; i++)
		end[i].ops->close(end[i].link);
}

static void add_link(struct plan *plan, char *text)
{
	char *list = strchr(text, ':');

	if (list)
		*list++ = '\0';
	if (plan->n_links == MAX_LINKS)
		errx(2, "at most %d links", MAX_LINKS);
	plan->link[plan->n_links].ops = bench_link_find(text);
	if (!plan->link[plan->n_links].ops)
		errx(2, "no link is called '%s'", text);
	plan->link[plan->n_links++].list = list ? (unsigned)atoi(list) : 1;
}

static void parse(struct plan *plan, int argc, char **argv)
{
	static const struct option options[] = { { "turns", required_argument, NULL, 't' },
		                                 { "bytes", required_argument, NULL, 'b' },
		                                 { "exchanges", required_argument, NULL, 'x' },
		                                 { "from", required_argument, NULL, 'f' },
		                                 { "to", required_argument, NULL, 'o' },
		                                 { "cq-qps", required_argument, NULL, 'q' },
		                                 { "device", required_argument, NULL, 'd' },
		                                 { NULL, 0, NULL, 0 } };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 't':
			plan->turns = (unsigned)atoi(optarg);
			break;
		case 'b':
			plan->bytes = (uint32_t)atoi(optarg);
			break;
		case 'x':
			plan->exchanges = (unsigned)atoi(optarg);
			break;
		case 'f':
			plan->spec.address[0] = optarg;
			break;
		case 'o':
			plan->spec.address[1] = optarg;
			break;
		case 'd':
			plan->spec.device = optarg;
			break;
		case 'q':
			plan->spec.idle_qps = (unsigned)atoi(optarg) - 1;
			break;
		default:
			exit(2);
		}
	}
	if (optind == argc || (strcmp(argv[optind], "latency") && strcmp(argv[optind], "rate")))
		errx(2, "which measurement? latency or rate");
	plan->rate = !strcmp(argv[optind++], "rate");
	while (optind < argc)
		add_link(plan, argv[optind++]);
}

int main(int argc, char **argv)
{
	struct plan plan = { .turns = 5, .bytes = 64, .spec.address = { "10.0.0.1", "10.0.0.2" } };
	struct bench_pair *pair;

	parse(&plan, argc, argv);
	plan.spec.bytes = plan.bytes;
	/* as much under way as stays in a processor's own cache */
	plan.spec.depth = plan.bytes > 1024 ? 64 : plan.bytes > 256 ? 256 : 512;
	pair = bench_pair_new();
	for (unsigned i = 0; i < plan.n_links; i++) {
		plan.spec.index = i;
		if (plan.link[i].ops->prepare)
			plan.link[i].shared = plan.link[i].ops->prepare(&plan.spec);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	return bench_pair_run(pair, run, &plan);
}
