/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The versions of libibverbs's private interface, which drivers and some programs bind to. Each
 * rdma-core that changes the interface gives it a new version, and libraries built for one release
 * ask for that release's: one build of ours serves them all. docs/abi.md lists which release has
 * which; tests/abi/symbols.txt lists the names.
 *
 * SINCE_N(name), before the definition of private_NAME, exports that as NAME in version N and in
 * all later ones. The map must have the versions; it does not name what is in them.
 */
#ifndef API_VERBS_PRIVATE_H
#define API_VERBS_PRIVATE_H

/* The default version is the first: it is what Debian 12 and 13 have. */
#define SYMVER(name, version) ".symver private_" #name ", " #name "@" version "\n"
#define SYMVERS_65(name)      SYMVER(name, "IBVERBS_PRIVATE_65")
#define SYMVERS_64(name)      SYMVER(name, "IBVERBS_PRIVATE_64") SYMVERS_65(name)
#define SYMVERS_59(name)      SYMVER(name, "IBVERBS_PRIVATE_59") SYMVERS_64(name)
#define SYMVERS_57(name)      SYMVER(name, "IBVERBS_PRIVATE_57") SYMVERS_59(name)

#define SINCE_34(name) __asm__(SYMVER(name, "@IBVERBS_PRIVATE_34") SYMVERS_57(name));
#define SINCE_59(name) __asm__(SYMVER(name, "@IBVERBS_PRIVATE_59") SYMVERS_64(name));
#define SINCE_64(name) __asm__(SYMVER(name, "@IBVERBS_PRIVATE_64") SYMVERS_65(name));
#define SINCE_65(name) __asm__(SYMVER(name, "@IBVERBS_PRIVATE_65"));

#endif
