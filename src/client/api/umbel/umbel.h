/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libumbel: a fabric for a unit test. The test starts one by umbel_enter(), uses verbs and rdma_cm
 * as on hardware, breaks the fabric on purpose, and asks for counters of packets and faults. When
 * the test ends, in whatever way, the fabric ends with it, and nothing is left behind.
 *
 * Each function runs the command umbel(1) of the PATH, which takes a few milliseconds, and returns
 * when the command has ended. The functions are thread-safe, but not for signal handlers. A program
 * that ignores SIGCHLD gets ECHILD from all of them.
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
 * Starts the program again on a fabric of its own. The process becomes `umbel run OPTION... --
 * PROGRAM ARGUMENT...`. That runs the program from its start, and there this function returns 0.
 * @argv is that of main(). @options are options of umbel-run(1), such as "--hosts", "4", and end
 * with NULL; NULL: none. Without "--host" the process sees the HCAs of all hosts, whose names have
 * the name of the host: umbel_h2_0.
 *
 * Call it first in main(), before threads and output. In a process that runs on a fabric already,
 * as by `umbel exec`, it does nothing, and the test uses that fabric.
 *
 * Returns 0; or -1, with errno and umbel_error(): the command cannot be run.
 */
int umbel_enter(char **argv, const char *const *options);

/* Why the last call of this thread failed, in words; "" if it did not fail. The text is valid up to
 * the next call. */
const char *umbel_error(void);

/*
 * Runs `umbel ARGUMENT...`; @arguments ends with NULL. Returns its output, which the caller frees:
 * with { "show", "groups", "--json", NULL } the groups as JSON. NULL: it failed, with errno:
 * ENOMEM: there is no memory; ENOENT: there is no command umbel; EPROTO: the command failed, and
 * umbel_error() says why.
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
 * Adds a rule of umbel-fault(1), by which packets are lost, delayed, damaged and so on:
 * umbel_fault("to=h2:* opcode=RC_SEND_ONLY nth=%d drop", n). The rule affects datagrams at once,
 * and connections that are made from now on. Returns the number of the rule, from 1.
 */
int umbel_fault(const char *format, ...)
#ifdef __GNUC__
        __attribute__((format(printf, 1, 2)))
#endif
        ;

/* Ends all rules. */
int umbel_fault_clear(void);

/* ---- asking: a number; or -1 with umbel_error() ---- */

/* How many packets the rule has affected. A test that adds a rule should assert that it has fired.
 */
int64_t umbel_fault_fired(int number);

/*
 * The value of a counter of a port ("h2:1", "sw1:3"): @counter is a key of
 * `umbel show counters --json`, such as "no_receive". errno is ENOENT if there is no such port or
 * counter.
 */
int64_t umbel_counter(const char *port, const char *counter);

/*
 * Waits until a multicast group has @members members and @attached attached queue pairs, for
 * @seconds at most. @group: its MGID, or on RoCE its IPv4 address. 0; or -1.
 */
int umbel_wait_group(const char *group, unsigned members, unsigned attached, unsigned seconds);

/* ---- seeing ---- */

/*
 * Begins to capture packets to a file, for Wireshark. @options are options of umbel-capture(1),
 * such as "--data" or "--group", "ff12::1", and end with NULL; NULL: none, so it captures MADs.
 * After the return the capture runs: it has the packets of connections that are made from now on.
 * It ends with the fabric at the latest. NULL with errno and umbel_error(), as of umbel_ask().
 */
struct umbel_capture;
struct umbel_capture *umbel_capture_begin(const char *file, const char *const *options);

/*
 * Ends the capture, and frees it in any case. Returns the number of packets in the file, which has
 * all that were sent before. *@lost, unless @lost is NULL: the number of packets for which there
 * was no room. -1: the file could not be written, or the fabric is gone; with errno and
 * umbel_error().
 */
int64_t umbel_capture_end(struct umbel_capture *capture, int64_t *lost);

#ifdef __cplusplus
}
#endif

#endif
