/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The choices of a weak fabric: see weak.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/util.h"
#include "hca/process/weak.h"
#include "shm/layout.h"

#define HELD_BYTES  (64ull << 20) /* of messages that wait, in all */
#define LOG_MOST    (1u << 20)    /* choices that are noted */
#define TICK_NS     1000000
#define STACK_BYTES (256u << 10)

/* A choice that the process is to meet: of a file. */
struct kept {
	struct base_hash_node node; /* by its place */
	struct base_weak_choice choice;
};

struct hca_weak {
	uint32_t kinds;
	uint64_t drawn; /* base_weak_hash_process() */
	struct base_weak_place self;
	_Atomic uint32_t objects;
	_Atomic uint64_t held;
	/* a file of choices, and no others, if there is one */
	bool by_file;
	struct base_hash kept;
	/* a file in the folder, mapped, as the process may be killed: NULL: nothing is noted */
	struct base_weak_noted *log;
	/* the thread */
	pthread_mutex_t lock;
	pthread_t thread;
	atomic_bool has_thread;
	bool has_said; /* that there can be none */
	hca_weak_serve *serve;
	struct hca_process *process; /* what that is told */
	_Atomic uint32_t wanted;     /* 0: it sleeps; a futex */
	_Atomic bool ends;
};

static _Thread_local bool is_thread;

/* ---- choices ---- */

static uint64_t hash_of(uint32_t object, uint32_t request, unsigned step)
{
	return (uint64_t)object << 40 ^ (uint64_t)request << 8 ^ step;
}

static const struct base_weak_choice *find(const struct hca_weak *w, uint32_t object,
                                           uint32_t request, enum base_weak_step step)
{
	struct base_hash_node *n = base_hash_first(&w->kept, hash_of(object, request, step));

	return n ? &container_of(n, struct kept, node)->choice : NULL;
}

static void note(struct hca_weak *w, uint32_t object, uint32_t request, enum base_weak_step step,
                 uint8_t amount, bool by_time)
{
	uint32_t i;

	if (!w->log)
		return;
	i = atomic_fetch_add_explicit(&w->log->n, 1, memory_order_relaxed);
	if (i >= LOG_MOST)
		return;
	w->log->at[i] = (struct base_weak_note){ object, request, (uint8_t)step, amount, by_time };
}

uint8_t hca_weak_choose(struct hca_weak *w, uint32_t object, uint32_t request,
                        enum base_weak_step step)
{
	const struct base_weak_choice *c;
	uint8_t amount = 0;

	if (w->by_file) {
		c = find(w, object, request, step);
		amount = c ? c->amount : 0;
	} else if (w->kinds >> base_weak_kind_of(step) & 1) {
		amount = base_weak_draw(w->drawn, object, request, step);
	}
	if (amount)
		note(w, object, request, step, amount, false);
	return amount;
}

uint64_t hca_weak_patience_ns(const struct hca_weak *w, uint32_t object, uint32_t request,
                              enum base_weak_step step)
{
	return 1000ull * base_weak_patience_us(w->drawn, object, request, step);
}

void hca_weak_by_time(struct hca_weak *w, uint32_t object, uint32_t request,
                      enum base_weak_step step)
{
	note(w, object, request, step, 0, true);
}

uint32_t hca_weak_object(struct hca_weak *w)
{
	return atomic_fetch_add_explicit(&w->objects, 1, memory_order_relaxed);
}

bool hca_weak_hold(struct hca_weak *w, uint64_t bytes)
{
	if (atomic_fetch_add_explicit(&w->held, bytes, memory_order_relaxed) + bytes <= HELD_BYTES)
		return true;
	hca_weak_release(w, bytes);
	return false;
}

void hca_weak_release(struct hca_weak *w, uint64_t bytes)
{
	atomic_fetch_sub_explicit(&w->held, bytes, memory_order_relaxed);
}

/* ---- the thread ---- */

/* For @ns at most; UINT64_MAX: for ever. */
static void wait_until_wanted(struct hca_weak *w, uint64_t ns)
{
	const struct timespec most = { .tv_sec = (time_t)(ns / 1000000000),
		                       .tv_nsec = (long)(ns % 1000000000) };

	/* it returns at once if requests wait; if a signal ends it, the look is in vain */
	syscall(SYS_futex, &w->wanted, FUTEX_WAIT_PRIVATE, 0, ns == UINT64_MAX ? NULL : &most, NULL,
	        0);
}

static void *run(void *arg)
{
	struct hca_weak *w = arg;
	const struct timespec tick = { .tv_nsec = TICK_NS };
	uint64_t next_ns = UINT64_MAX;

	is_thread = true;
	while (!atomic_load_explicit(&w->ends, memory_order_acquire)) {
		wait_until_wanted(w, next_ns);
		nanosleep(&tick, NULL);
		/* before the look: a request that is posted meanwhile wakes again */
		atomic_store_explicit(&w->wanted, 0, memory_order_seq_cst);
		next_ns = w->serve(w->process);
	}
	return NULL;
}

bool hca_weak_start(struct hca_weak *w, hca_weak_serve *serve, struct hca_process *p)
{
	int ret = 0;

	pthread_mutex_lock(&w->lock);
	if (!hca_weak_has_thread(w)) {
		w->serve = serve;
		w->process = p;
		ret = base_thread_start(&w->thread, STACK_BYTES, run, w);
		if (!ret)
			/* release: pairs with hca_weak_has_thread() */
			atomic_store_explicit(&w->has_thread, true, memory_order_release);
		else if (!w->has_said)
			base_log("this program's fabric is not weak: it can have no thread more: "
			         "%s",
			         strerror(-ret));
		w->has_said |= ret != 0;
	}
	pthread_mutex_unlock(&w->lock);
	return !ret;
}

bool hca_weak_has_thread(const struct hca_weak *w)
{
	return atomic_load_explicit(&w->has_thread, memory_order_acquire);
}

void hca_weak_wake(struct hca_weak *w)
{
	if (atomic_exchange_explicit(&w->wanted, 1, memory_order_seq_cst))
		return;
	syscall(SYS_futex, &w->wanted, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool hca_weak_is_thread(void)
{
	return is_thread;
}

/* ---- from start to end ---- */

static bool is_own(const struct hca_weak *w, const struct base_weak_choice *c)
{
	return c->at.process == w->self.process && !strcmp(c->at.host, w->self.host);
}

static void keep(struct hca_weak *w, const struct base_weak_choice *c)
{
	struct kept *k = malloc(sizeof(*k));

	if (!k)
		return;
	k->choice = *c;
	if (base_hash_add(&w->kept, &k->node, hash_of(c->at.object, c->at.request, c->step)))
		free(k);
}

/* The command has checked it. */
static void read_choices(struct hca_weak *w, const char *path)
{
	FILE *from = fopen(path, "re");
	struct base_weak_choice c;
	int ret = 1;

	if (!from) {
		base_log("cannot read '%s': %s", path, strerror(errno));
		return;
	}
	while (ret > 0) {
		ret = base_weak_read(from, &c);
		if (ret > 0 && is_own(w, &c))
			keep(w, &c);
	}
	fclose(from);
}

static void open_log(struct hca_weak *w, const char *folder)
{
	const size_t bytes = sizeof(*w->log) + LOG_MOST * sizeof(w->log->at[0]);
	char path[PATH_MAX];
	void *at = MAP_FAILED;
	int fd;

	snprintf(path, sizeof(path), "%s/%s.%u", folder, *w->self.host ? w->self.host : "-",
	         w->self.process);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd >= 0 && !ftruncate(fd, (off_t)bytes))
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		base_log("no choices of this process are noted: '%s': %s", path, strerror(errno));
	else
		w->log = at;
	if (fd >= 0)
		close(fd);
}

/* The environment decides; without its variable, the settings of the fabric do. */
static bool is_wanted(const struct shm_settings *s, struct base_weak *says)
{
	const char *variable = secure_getenv(BASE_WEAK_VARIABLE);
	char why[160];

	*says = (struct base_weak){ .seed = s->weak_seed, .kinds = s->weak };
	if (variable && *variable && !base_weak_parse(variable, says, why, sizeof(why)))
		base_log("this program's fabric is not weak: " BASE_WEAK_VARIABLE ": %s", why);
	return says->kinds;
}

struct hca_weak *hca_weak_new(const struct shm_settings *settings, const char *host,
                              uint32_t number)
{
	const char *choices = secure_getenv(BASE_WEAK_CHOICES);
	const char *folder = secure_getenv(BASE_WEAK_FOLDER);
	struct base_weak says;
	struct hca_weak *w;

	if (!is_wanted(settings, &says))
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w) {
		base_log("this program's fabric is not weak: %s", strerror(ENOMEM));
		return NULL;
	}
	pthread_mutex_init(&w->lock, NULL);
	w->kinds = says.kinds;
	w->self.process = number;
	snprintf(w->self.host, sizeof(w->self.host), "%s", host ? host : "");
	w->by_file = choices && *choices;
	/* what is waited for is not in the file: it is the same whatever seed the choices are of */
	w->drawn =
	        base_weak_hash_process(w->by_file ? 0 : says.seed, w->self.host, w->self.process);
	if (w->by_file)
		read_choices(w, choices);
	if (folder && *folder)
		open_log(w, folder);
	return w;
}

static void free_kept(struct hca_weak *w)
{
	struct base_hash_node *n;

	while ((n = base_hash_walk(&w->kept, NULL))) {
		base_hash_remove(&w->kept, n);
		free(container_of(n, struct kept, node));
	}
	base_hash_fini(&w->kept);
}

void hca_weak_free(struct hca_weak *w)
{
	if (!w)
		return;
	atomic_store_explicit(&w->ends, true, memory_order_release);
	atomic_store_explicit(&w->wanted, 1, memory_order_release);
	syscall(SYS_futex, &w->wanted, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	if (hca_weak_has_thread(w))
		pthread_join(w->thread, NULL);
	if (w->log)
		munmap(w->log, sizeof(*w->log) + LOG_MOST * sizeof(w->log->at[0]));
	free_kept(w);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
