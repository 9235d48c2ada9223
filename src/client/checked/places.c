/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Places in the program: see places.h. Lines come from libdw.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <execinfo.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/util.h"
#include "checked/allocator.h"
#include "checked/places.h"

#define DEEP 32 /* frames that are looked at, ours included */

struct place {
	struct base_hash_node by_caller, by_stack;
	const void *caller;
	uint32_t number, n;
	void *at[CHECKED_FRAMES];
};

static struct {
	struct place **place; /* by number, from 1 */
	uint32_t n, room;
	struct base_hash by_caller, by_stack;
	char own[PATH_MAX]; /* the folder of our libraries, with its slash */
} all;

void checked_places_start(void)
{
	void *stack[1];
	Dl_info self;
	const char *slash;

	backtrace(stack, 1); /* loads a library the first time */
	if (!dladdr((void *)checked_places_start, &self))
		return;
	slash = strrchr(self.dli_fname, '/');
	snprintf(all.own, sizeof(all.own), "%.*s", slash ? (int)(slash + 1 - self.dli_fname) : 0,
	         self.dli_fname);
}

/* A library that is looked for, by an address within or by its name. */
struct wanted {
	uintptr_t within;
	const char *name;
	bool is_ours, is_libc;
	uintptr_t base;
	struct checked_frame *frame; /* gets its path, or NULL */
};

static bool covers(const struct dl_phdr_info *info, uintptr_t at)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && at - info->dlpi_addr - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

/* Programs of ours may lie beside our libraries: those alone count. */
static int is_it(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	struct wanted *w = arg;
	const size_t n = strlen(all.own);

	(void)bytes;
	if (w->name)
		return !strcmp(basename(info->dlpi_name), w->name);
	if (!covers(info, w->within))
		return 0;
	w->is_ours = n && !strncmp(info->dlpi_name, all.own, n) &&
	             !strncmp(info->dlpi_name + n, "lib", 3);
	w->is_libc = !strcmp(basename(info->dlpi_name), "libc.so.6");
	w->base = info->dlpi_addr;
	if (w->frame)
		snprintf(w->frame->module, sizeof(w->frame->module), "%s",
		         *info->dlpi_name ? info->dlpi_name : program_invocation_name);
	return 1;
}

/* Not by dladdr(): it waits for a thread that loads a library, whose constructors may wait for the
 * lock of the checker. */
bool checked_place_is_ours(const void *address)
{
	struct wanted w = { .within = (uintptr_t)address };

	dl_iterate_phdr(is_it, &w);
	return w.is_ours;
}

bool checked_place_has_library(const char *name)
{
	return dl_iterate_phdr(is_it, &(struct wanted){ .name = name });
}

/* The first frame behind those of ours that stand at @from, or behind it. A sanitizer of the
 * program may be the innermost of all, as it has a backtrace() of its own. */
static int behind_ours(void *const *stack, int from, int n)
{
	while (from < n && !checked_place_is_ours(stack[from]))
		from++;
	while (from < n && checked_place_is_ours(stack[from]))
		from++;
	return from;
}

static bool is_libc(const void *address)
{
	struct wanted w = { .within = (uintptr_t)address };

	dl_iterate_phdr(is_it, &w);
	return w.is_libc;
}

/* The program calls fork(), which calls us; and its threads are started by the C library. */
static uint32_t walk(void **at)
{
	void *stack[DEEP];
	int n = backtrace(stack, DEEP), first = behind_ours(stack, 0, n);
	uint32_t kept = 0;

	while (first < n && (is_libc(stack[first]) || checked_place_is_ours(stack[first])))
		first++;
	while (n > first + 1 && is_libc(stack[n - 1]))
		n--;
	while (first < n && kept < CHECKED_FRAMES)
		at[kept++] = stack[first++];
	return kept;
}

bool checked_place_is_interrupted(void)
{
	void *stack[2 * DEEP];
	int n = backtrace(stack, 2 * DEEP), program = behind_ours(stack, 0, n);

	while (program < n && !checked_place_is_ours(stack[program]))
		program++;
	return program < n;
}

static uint32_t add(struct place *p)
{
	if (all.n + 1 >= all.room) {
		const uint32_t room = all.room ? 2 * all.room : 64;
		struct place **more = realloc(all.place, room * sizeof(struct place *));

		if (!more)
			return 0;
		all.place = more;
		all.room = room;
	}
	all.place[++all.n] = p;
	p->number = all.n;
	return all.n;
}

static struct place *find_caller(const void *caller)
{
	struct base_hash_node *n = base_hash_first(&all.by_caller, (uintptr_t)caller);

	while (n && container_of(n, struct place, by_caller)->caller != caller)
		n = base_hash_next(n);
	return n ? container_of(n, struct place, by_caller) : NULL;
}

static struct place *find_stack(const struct place *like, uint64_t hash)
{
	struct place *p;

	BASE_HASH_FOREACH(p, &all.by_stack, hash, by_stack)
		if (p->n == like->n && !memcmp(p->at, like->at, p->n * sizeof(p->at[0])))
			return p;
	return NULL;
}

static uint32_t new_place(const void *caller)
{
	struct place p = { .caller = caller }, *found;
	uint64_t hash;
	uint32_t number;

	p.n = walk(p.at);
	hash = base_hash_of(p.at, p.n * sizeof(p.at[0]), 0);
	found = caller ? NULL : find_stack(&p, hash);
	if (found)
		return found->number;
	found = malloc(sizeof(*found));
	if (!found)
		return 0;
	*found = p;
	number = add(found);
	if (!number || base_hash_add(&all.by_stack, &found->by_stack, hash)) {
		free(found);
		all.n -= number != 0;
		return 0;
	}
	if (caller)
		base_hash_add(&all.by_caller, &found->by_caller, (uintptr_t)caller);
	return number;
}

uint32_t checked_place(const void *caller)
{
	const struct place *p = caller ? find_caller(caller) : NULL;

	return p ? p->number : new_place(caller);
}

uint64_t checked_place_key(uint32_t place)
{
	return place && all.place[place]->n ? (uintptr_t)all.place[place]->at[0] : 0;
}

unsigned checked_place_stack(uint32_t place, void *const **stack)
{
	*stack = place ? all.place[place]->at : NULL;
	return place ? all.place[place]->n : 0;
}

/* ---- words ---- */

static int find_debuginfo(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base,
                          const char *file, const char *link, GElf_Word crc, char **found)
{
	if (getenv("DEBUGINFOD_URLS")) /* would ask the network */
		return -1;
	return dwfl_standard_find_debuginfo(mod, data, name, base, file, link, crc, found);
}

static Dwfl *look_at_modules(void)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = find_debuginfo,
	};
	Dwfl *dwfl = dwfl_begin(&callbacks);

	if (!dwfl)
		return NULL;
	if (!dwfl_linux_proc_report(dwfl, getpid()) && !dwfl_report_end(dwfl, NULL, NULL))
		return dwfl;
	dwfl_end(dwfl);
	return NULL;
}

/* The library's own headers have functions that are part of the program's. */
static bool is_header(const char *file)
{
	return strstr(file, "/infiniband/") || strstr(file, "/rdma/rdma_");
}

static const char *file_of_call(Dwarf_Die *unit, Dwarf_Die *inlined, int *line)
{
	Dwarf_Attribute attr;
	Dwarf_Word file, at;
	Dwarf_Files *files;

	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attr), &file) ||
	    dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attr), &at) ||
	    dwarf_getsrcfiles(unit, &files, NULL))
		return NULL;
	*line = (int)at;
	return dwarf_filesrc(files, file, NULL, NULL);
}

/* The functions that are inlined at @at, each with where it stands, the innermost first, and the
 * one that they are inlined in. @f[0] has the file and the line. How many. */
static unsigned expand(Dwfl_Module *mod, Dwarf_Addr at, struct checked_frame *f, unsigned most)
{
	Dwarf_Addr bias;
	Dwarf_Die *unit = dwfl_module_addrdie(mod, at, &bias), *scope = NULL;
	int n = unit ? dwarf_getscopes(unit, at - bias, &scope) : 0;
	unsigned used = 0;

	for (int i = 0; i < n && used + 1 < most; i++) {
		const char *name = dwarf_diename(&scope[i]), *file;

		if (dwarf_tag(&scope[i]) == DW_TAG_subprogram)
			break;
		if (dwarf_tag(&scope[i]) != DW_TAG_inlined_subroutine)
			continue;
		snprintf(f[used].function, sizeof(f[used].function), "%s", name ? name : "");
		file = file_of_call(unit, &scope[i], &f[used + 1].line);
		if (!file)
			break;
		if (!is_header(f[used].file))
			used++;
		else
			f[used].line = f[used + 1].line;
		snprintf(f[used].file, sizeof(f[used].file), "%s", file);
	}
	checked_free_foreign(scope);
	return used + 1;
}

static unsigned describe_line(Dwfl *dwfl, Dwarf_Addr at, struct checked_frame *f, unsigned most)
{
	Dwfl_Module *mod = dwfl_addrmodule(dwfl, at);
	const char *name = mod ? dwfl_module_addrname(mod, at) : NULL, *file;
	Dwfl_Line *line = mod ? dwfl_module_getsrc(mod, at) : NULL;
	unsigned n = 1;

	file = line ? dwfl_lineinfo(line, NULL, &f->line, NULL, NULL, NULL) : NULL;
	if (file) {
		snprintf(f->file, sizeof(f->file), "%s", file);
		n = expand(mod, at, f, most);
	}
	/* what the compiler has made of a function has a suffix: ".isra.0" */
	if (name)
		snprintf(f[n - 1].function, sizeof(f->function), "%.*s", (int)strcspn(name, "."),
		         name);
	return n;
}

/* The instruction before a return address is the call. How many frames. */
static unsigned describe(Dwfl *dwfl, const char *at, struct checked_frame *f, unsigned most)
{
	const unsigned n = dwfl ? describe_line(dwfl, (uintptr_t)at - 1, f, most) : 1;

	for (unsigned i = 0; i < n; i++) {
		struct wanted of = { .within = (uintptr_t)at, .frame = &f[i] };

		if (dl_iterate_phdr(is_it, &of))
			f[i].offset = (uintptr_t)at - of.base;
	}
	return n;
}

unsigned checked_place_frames(void *const *stack, unsigned n_stack, struct checked_frame *frame,
                              unsigned most)
{
	Dwfl *dwfl = n_stack ? look_at_modules() : NULL;
	unsigned n = 0;

	memset(frame, 0, most * sizeof(*frame));
	for (unsigned i = 0; i < n_stack && n < most; i++) {
		n += describe(dwfl, stack[i], &frame[n], most - n);
		/* it calls main(), which has no name here */
		if (!strncmp(frame[n - 1].function, "__libc_start_", strlen("__libc_start_"))) {
			n--;
			break;
		}
		if (!strcmp(frame[n - 1].function, "main"))
			break;
	}
	if (dwfl)
		dwfl_end(dwfl);
	return n;
}
