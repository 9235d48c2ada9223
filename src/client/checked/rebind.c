/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls of one library that lead to the C library again: see rebind.h.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "checked/rebind.h"

#if defined(__x86_64__)
#define IS_CALL(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#elif defined(__aarch64__)
#define IS_CALL(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#else
#define IS_CALL(type) false
#endif

/* By these libibverbs reads and writes memory of requests. */
static const char *const functions[] = { "memcpy", "memmove",          "memset",
	                                 "memcmp", "process_vm_readv", "process_vm_writev",
	                                 "pread",  "pread64",          "preadv2",
	                                 "pwrite", "pwrite64" };

/* A library, as it lies in memory. */
struct library {
	uintptr_t within, base;
	const Elf64_Dyn *dynamic;
	uintptr_t sealed,
	        sealed_end; /* pages that were made read-only after the library was loaded */
};

static bool covers(const struct dl_phdr_info *info, uintptr_t at)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && at - info->dlpi_addr - p->p_vaddr < p->p_memsz)
			return true;
	}
	return false;
}

static int look_at(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct library *l = arg;

	(void)bytes;
	if (!covers(info, l->within))
		return 0;
	l->base = info->dlpi_addr;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *p = &info->dlpi_phdr[i];
		const uintptr_t at = l->base + p->p_vaddr;

		if (p->p_type == PT_DYNAMIC)
			l->dynamic = (const void *)at;
		if (p->p_type != PT_GNU_RELRO)
			continue;
		l->sealed = at / page * page;
		l->sealed_end = (at + p->p_memsz) / page * page;
	}
	return 1;
}

static uintptr_t entry_of(const struct library *l, Elf64_Sxword tag)
{
	for (const Elf64_Dyn *d = l->dynamic; d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag)
			return d->d_un.d_ptr;
	return 0;
}

/* The dynamic linker has made addresses of offsets. */
static const void *table_of(const struct library *l, Elf64_Sxword tag)
{
	const uintptr_t at = entry_of(l, tag);

	return (const void *)(at && at < l->base ? at + l->base : at);
}

static void *own_function(void *libc, const char *name)
{
	for (unsigned i = 0; i < ARRAY_SIZE(functions); i++)
		if (!strcmp(name, functions[i]))
			return dlsym(libc, name);
	return NULL;
}

static void bind_all(const struct library *l, void *libc, Elf64_Sxword table, Elf64_Sxword size)
{
	const Elf64_Sym *symbols = table_of(l, DT_SYMTAB);
	const char *names = table_of(l, DT_STRTAB);
	const Elf64_Rela *r = table_of(l, table);
	const size_t n = entry_of(l, size) / sizeof(*r);

	for (size_t i = 0; symbols && names && r && i < n; i++) {
		const Elf64_Sym *symbol = &symbols[ELF64_R_SYM(r[i].r_info)];
		void *to = IS_CALL(ELF64_R_TYPE(r[i].r_info))
		                   ? own_function(libc, names + symbol->st_name)
		                   : NULL;

		if (to)
			__atomic_store_n((void **)(l->base + r[i].r_offset), to, __ATOMIC_RELAXED);
	}
}

void checked_rebind(const void *within)
{
	struct library l = { .within = (uintptr_t)within };
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	void *sealed;

	if (!libc || !dl_iterate_phdr(look_at, &l))
		return;
	sealed = (void *)l.sealed;
	if (l.sealed_end > l.sealed &&
	    mprotect(sealed, l.sealed_end - l.sealed, PROT_READ | PROT_WRITE))
		return;
	bind_all(&l, libc, DT_JMPREL, DT_PLTRELSZ);
	bind_all(&l, libc, DT_RELA, DT_RELASZ);
	if (l.sealed_end > l.sealed)
		mprotect(sealed, l.sealed_end - l.sealed, PROT_READ);
}
