/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of libibverbs for librdmacm, which is of the same build: the process's connection to the
 * daemon. As both share it, their requests are served in order, and can go together.
 */
#ifndef API_VERBS_CONNECTION_H
#define API_VERBS_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

struct control_client;
struct ibv_context;
struct ibv_qp;

/* The process's connection, which is made if there is none; a child of fork() makes a connection of
 * its own. The caller has it as long as the process lives. NULL: *@error says why. */
struct control_client *umbel_connection(int *error);

/* Whether @connection is the process's still: it is not once its fabric has ended, or in a child of
 * fork(). */
bool umbel_connection_stands(const struct control_client *connection);

/* The address of @bytes of the shared memory, at an offset that the daemon has told this process by
 * @connection. NULL: nobody may write there, or its fabric has ended. */
void *umbel_shared_memory(const struct control_client *connection, uint64_t off, uint32_t bytes);

/* The daemon has been told by now of the queue pair's move to RTR and RTS, which stood in a batch:
 * peers' requests that waited for it are carried out. */
void umbel_qp_has_moved(struct ibv_qp *qp);

/* For the watcher of a checked program (src/client/checked/watcher.h), if there is one: the program
 * has been told that its port is a member of the group, whose 16 bytes @mgid has; and has left it.
 */
void umbel_group_joined(struct ibv_context *context, uint8_t port, const void *mgid,
                        bool sends_only);
void umbel_group_left(struct ibv_context *context, uint8_t port, const void *mgid);

#endif
