/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RANK SIZE DIRECTORY DEVICE: sums over all ranks by gloo's ring over its ibverbs transport, each checked.
 * The script gloo.sh builds it, and runs one on each host.
 */
#include <gloo/allreduce_ring.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <cstdio>
#include <cstdlib>

/* How many of n sums are wrong. What it has made stays: gloo does not wait for its own completions
 * before it takes down what they are about, and complains. */
static int sum(const std::shared_ptr<gloo::Context> &context, int n)
{
	const int rank = context->rank, size = context->size;
	auto *numbers = new std::vector<float>(n);
	int wrong = 0;

	for (int i = 0; i < n; i++)
		(*numbers)[i] = float(rank + i % 1000);
	(new gloo::AllreduceRing<float>(context, { numbers->data() }, n))->run();
	for (int i = 0; i < n; i++)
		wrong += (*numbers)[i] != float(size * (size - 1) / 2 + size * (i % 1000));
	return wrong;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	gloo::rendezvous::FileStore store(argv[3]);
	auto context = std::make_shared<gloo::rendezvous::Context>(atoi(argv[1]), atoi(argv[2]));
	gloo::transport::ibverbs::attr attr = { argv[4], 1, 0 };
	int wrong = 0;

	auto device = gloo::transport::ibverbs::CreateDevice(attr);
	context->connectFullMesh(store, device);
	for (int n : { 1, 1000, 100000 })
		wrong += sum(context, n);
	(new gloo::BarrierAllToAll(context))->run();
	printf("%d of %d: %d wrong\n", context->rank, context->size, wrong);
	fflush(stdout);
	_Exit(wrong != 0);
}
