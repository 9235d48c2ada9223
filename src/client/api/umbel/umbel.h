/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libumbel: a fabric for a unit test. The test starts one by umbel_enter(), uses verbs and rdma_cm
 * as on hardware, breaks the fabric on purpose, and asks what has become of its packets. When the
 * test ends, however it does, the fabric ends with it, and nothing is left behind.
 *
 * Each function runs the command umbel(1) that is on the PATH, which takes a few milliseconds, and
 * returns when it has ended. Thread-safe; not for signal handlers. A program that ignores SIGCHLD
 * gets ECHILD from all of them.
 *
 * Link with `pkg-config --libs umbel`. The manual page umbel(3) has an example.
 */
#ifndef UMBEL_H
#define UMBEL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Goes on in a fabric of its own: the process becomes `umbel run OPTION... -- PROGRAM ARGUMENT...`,
 * which runs the program anew, where this function returns 0. @argv is main()'s; @options, which
 * ends with NULL, is what umbel-run(1) takes, such as "--hosts", "4"; NULL: none. Without
 * "--host" the process sees the HCAs of all hosts, each of which has its name in its own:
 * umbel_h2_0.
 *
 * Call it first in main(), before threads and output. In a process that runs on a fabric already,
 * as by `umbel exec`, it does nothing, and that is the fabric.
 *
 * 0; -1: the command is not to be had, with errno and umbel_error().
 */
int umbel_enter(char **argv, const char *const *options);

/* Why the thread's last call has failed, in words; "" if it has not. Up to its next call. */
const char *umbel_error(void);

/*
 * Runs `umbel ARGUMENT...`; @arguments ends with NULL. Returns what it prints, to be freed: with
 * { "show", "groups", "--json", NULL } the groups as JSON. NULL: it has failed, or there is no
 * memory (errno: ENOMEM), no such command (ENOENT), or EPROTO: it says why by umbel_error().
 */
char *umbel_ask(const char *const *arguments);

/* ---- breaking the fabric: 0; or -1 with umbel_error(), and errno as umbel_ask() has it, or EINVAL
 * for a name or a rule that begins with '-' ---- */

/* Takes the link at a port, such as "h2:1" or "sw1:3", down, or up again. Returns when the subnet
 * manager has routed around it: umbel-link(1). */
int umbel_link(const char *port, bool up);

/* Kills a switch, or revives it: umbel-switch(1). */
int umbel_switch(const char *name, bool alive);

/*
 * Adds a rule by which packets get lost, late, damaged ..., as umbel-fault(1) has them:
 * umbel_fault("to=h2:* opcode=RC_SEND_ONLY nth=%d drop", n). It concerns datagrams at once, and
 * connections that are made from now on. Returns its number, from 1.
 */
int umbel_fault(const char *format, ...)
#ifdef __GNUC__
        __attribute__((format(printf, 1, 2)))
#endif
        ;

/* Ends all rules. */
int umbel_fault_clear(void);

/* ---- asking: a number; or -1 with umbel_error() ---- */

/* How many packets the rule has met: a test that adds a rule asserts that it has fired. */
int64_t umbel_fault_fired(int number);

/*
 * The value of a counter of a port ("h2:1", "sw1:3"): @counter is a key of
 * `umbel show counters --json`, such as "no_receive". errno is ENOENT if there is no such port or
 * counter.
 */
int64_t umbel_counter(const char *port, const char *counter);

/*
 * Waits until a multicast group, by its MGID or IPv4 address of RoCE, has so many members and queue
 * pairs that are attached, but for @seconds at most. 0; -1.
 */
int umbel_wait_group(const char *group, unsigned members, unsigned attached, unsigned seconds);

/* ---- seeing ---- */

/*
 * Captures packets to a file, for Wireshark: umbel-capture(1), of which @options, which ends with
 * NULL, may be any, such as "--data" or "--group", "ff12::1"; NULL: none, so MADs. Returns when it
 * captures: connections that are made from now on are seen. It ends with the fabric at the latest.
 * NULL with errno and umbel_error(), as of umbel_ask().
 */
struct umbel_capture;
struct umbel_capture *umbel_capture_begin(const char *file, const char *const *options);

/*
 * Ends it, and frees it, whatever it returns: the number of packets in the file, which has all that
 * were sent before. @lost, unless it is NULL, gets how many had no room. -1: the file could not be
 * written, or its fabric is gone; with errno and umbel_error().
 */
int64_t umbel_capture_end(struct umbel_capture *capture, int64_t *lost);

#ifdef __cplusplus
}
#endif

#endif
