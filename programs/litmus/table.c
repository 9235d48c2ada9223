/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The litmus tests: see litmus.h. "IBA" is the InfiniBand specification, volume 1; "RDMA TSO" is
 * Ambal and others, Semantics of Remote Direct Memory Access, OOPSLA 2024.
 *
 * Queue pairs: 0 and 1 from A to B, 2 from B to A, 3 from B to C, 4 from A to C, 5 from C to B, all
 * RC; 6 from A to B, UC; 7 from A to B and 8 from A to C, UD.
 */
#include "litmus/litmus.h"

/* clang-format off */
#define STRONG(outcome) { outcome, LITMUS_STRONG }
#define WEAK(outcome) { outcome, LITMUS_WEAK }
#define NEVER(outcome) { outcome, LITMUS_NEVER }
#define LITMUS(name_, shows_, source_, init_, program_, ...) \
	{ .name = name_, .shows = shows_, .source = source_, .init = init_, .program = program_, \
	  .outcome = { __VA_ARGS__ } },
#define ORDER "IBA 10.8.3.3"
#define OWNED "IBA 10.8.3.1"

const struct litmus litmus_table[] = {
/* ---- when the bytes of a message are read ---- */
LITMUS("write-source-reused", "A buffer is changed before its WRITE has completed.", OWNED, "A.0=1",
       "put 0 B.0 A.0; st A.0 2; poll 0",
       STRONG("B.0=1"), WEAK("B.0=2"))
LITMUS("write-source-kept", "A buffer is changed behind the completion of its WRITE.", OWNED, "A.0=1",
       "put 0 B.0 A.0; poll 0; st A.0 2",
       STRONG("B.0=1"), NEVER("B.0=2"))
LITMUS("write-inline", "Inline data is read while it is posted.", "ibv_post_send(3)", "A.0=1",
       "put 0 B.0 A.0 1 i; st A.0 2; poll 0",
       STRONG("B.0=1"), NEVER("B.0=2"))
LITMUS("send-source-reused", "A buffer is changed before its SEND has completed.", OWNED, "A.0=1",
       "rcv 0 B.0; snd 0 A.0; st A.0 2; rpoll 0; ld r0 B.0",
       STRONG("r0=1"), WEAK("r0=2"))
LITMUS("send-source-kept", "A buffer is changed behind the completion of its SEND.", OWNED, "A.0=1",
       "rcv 0 B.0; snd 0 A.0; poll 0; st A.0 2; rpoll 0; ld r0 B.0",
       STRONG("r0=1"), NEVER("r0=2"))
LITMUS("send-inline", "Inline data of a SEND.", "ibv_post_send(3)", "A.0=1",
       "rcv 0 B.0; snd 0 A.0 i; st A.0 2; rpoll 0; ld r0 B.0",
       STRONG("r0=1"), NEVER("r0=2"))
LITMUS("sources-in-order", "Of two WRITEs of a queue pair the first one's bytes are read first.",
       "RDMA TSO", "",
       "put 0 B.0 A.0; put 0 B.1 A.1; st A.1 1; st A.0 1; poll 0; poll 0",
       STRONG("B.0=0 B.1=0"), WEAK("B.0=0 B.1=1"), WEAK("B.0=1 B.1=1"), NEVER("B.0=1 B.1=0"))
LITMUS("sources-of-two", "Of two queue pairs either's bytes are read first.", ORDER, "",
       "put 0 B.0 A.0; put 1 B.1 A.1; st A.1 1; st A.0 1; poll 0; poll 1",
       STRONG("B.0=0 B.1=0"), WEAK("B.0=0 B.1=1"), WEAK("B.0=1 B.1=1"), WEAK("B.0=1 B.1=0"))
LITMUS("unsignaled-source", "A later completion stands for an earlier request without one.", OWNED,
       "A.0=1 A.1=1",
       "put 0 B.0 A.0 1 u; put 0 B.1 A.1; poll 0; st A.0 2",
       STRONG("B.0=1 B.1=1"), NEVER("B.0=2"))
LITMUS("unsignaled-too-early", "A completion of another queue pair stands for nothing.", OWNED,
       "A.0=1 A.1=1",
       "put 0 B.0 A.0 1 u; put 1 B.1 A.1; poll 1; st A.0 2",
       STRONG("B.0=1 B.1=1"), WEAK("B.0=2 B.1=1"))
LITMUS("source-of-many", "A buffer is changed in the middle of a message.", OWNED, "",
       "put 0 B.0 A.0 4; st A.3 1; st A.0 1; poll 0",
       STRONG("B.0=0 B.3=0"), WEAK("B.0=0 B.3=1"), WEAK("B.0=1 B.3=1"), NEVER("B.0=1 B.3=0"))

/* ---- when they are placed ---- */
LITMUS("write-seen-late", "A WRITE that was posted is not there yet.", ORDER, "A.0=1",
       "put 0 B.0 A.0; ld r0 B.0; poll 0",
       STRONG("r0=1"), WEAK("r0=0"))
LITMUS("write-completed", "A WRITE that has completed is there.", "IBA 9.7.5.1", "A.0=1",
       "put 0 B.0 A.0; poll 0; ld r0 B.0",
       STRONG("r0=1"), NEVER("r0=0"))
LITMUS("write-write", "Two WRITEs of a queue pair are placed in order.", ORDER, "A.0=1 A.1=1",
       "put 0 B.0 A.0; put 0 B.1 A.1; poll 0; poll 0 || ld r1 B.1; ld r0 B.0",
       STRONG("r1=0 r0=0"), STRONG("r1=0 r0=1"), STRONG("r1=1 r0=1"), NEVER("r1=1 r0=0"))
LITMUS("write-write-of-two", "Two WRITEs of two queue pairs are not.", ORDER, "A.0=1 A.1=1",
       "put 0 B.0 A.0; put 1 B.1 A.1; poll 0; poll 1 || ld r1 B.1; ld r0 B.0",
       STRONG("r1=0 r0=0"), STRONG("r1=0 r0=1"), STRONG("r1=1 r0=1"), WEAK("r1=1 r0=0"))
LITMUS("write-send", "A receive completes behind the WRITEs ahead of its SEND.", ORDER, "A.0=1 A.1=1",
       "rcv 0 B.1; put 0 B.0 A.0; snd 0 A.1; rpoll 0; ld r0 B.0",
       STRONG("r0=1"), NEVER("r0=0"))
LITMUS("write-send-of-two", "Not if the SEND goes by another queue pair.", ORDER, "A.0=1 A.1=1",
       "rcv 1 B.1; put 0 B.0 A.0; snd 1 A.1; rpoll 1; ld r0 B.0",
       STRONG("r0=1"), WEAK("r0=0"))
LITMUS("write-poll-send", "It does if the WRITE had completed.", ORDER, "A.0=1 A.1=1",
       "rcv 1 B.1; put 0 B.0 A.0; poll 0; snd 1 A.1; rpoll 1; ld r0 B.0",
       STRONG("r0=1"), NEVER("r0=0"))
LITMUS("last-word", "The last word of a WRITE is there, and the first is not.",
       "ibv_query_qp_data_in_order(3)", "A.0=1 A.3=1",
       "put 0 B.0 A.0 4; ld r1 B.3; ld r0 B.0; poll 0",
       STRONG("r1=1 r0=1"), WEAK("r1=0 r0=0"), WEAK("r1=1 r0=0"), WEAK("r1=0 r0=1"))
LITMUS("all-words", "All words are there at the completion.", "IBA 9.7.5.1", "A.0=1 A.3=1",
       "put 0 B.0 A.0 4; poll 0; ld r1 B.3; ld r0 B.0",
       STRONG("r1=1 r0=1"), NEVER("r0=0"), NEVER("r1=0"))
LITMUS("words-then-flag", "A flag by a second WRITE comes behind all words of the first.", ORDER,
       "A.0=1 A.3=1 A.4=1",
       "put 0 B.0 A.0 4; put 0 B.4 A.4; poll 0; poll 0 || ld r4 B.4; ld r3 B.3; ld r0 B.0",
       STRONG("r4=0"), STRONG("r4=1 r3=1 r0=1"), NEVER("r4=1"))
LITMUS("receive-read-early", "A receive buffer is read before its completion.", OWNED, "A.0=1",
       "rcv 0 B.0; snd 0 A.0; ld r0 B.0; rpoll 0",
       STRONG("r0=1"), WEAK("r0=0"))
LITMUS("receive-read", "A receive buffer is read behind its completion.", OWNED, "A.0=1",
       "rcv 0 B.0; snd 0 A.0; rpoll 0; ld r0 B.0",
       STRONG("r0=1"), NEVER("r0=0"))
LITMUS("send-send", "Messages of a queue pair use receives in order.", "IBA 9.7.3.3", "A.0=1 A.1=2",
       "rcv 0 B.0; rcv 0 B.1; snd 0 A.0; snd 0 A.1; rpoll 0; rpoll 0",
       STRONG("B.0=1 B.1=2"), NEVER("B.0=2"))
LITMUS("send-send-of-two", "Messages of two queue pairs come in any order.", ORDER, "A.0=1 A.1=2",
       "rcv 0 B.0; rcv 1 B.1; snd 0 A.0; snd 1 A.1; rtry r1 1; rtry r0 0; poll 0; poll 1",
       STRONG("r0=1 r1=1"), WEAK("r0=0 r1=1"), WEAK("r0=1 r1=0"), WEAK("r0=0 r1=0"))
LITMUS("send-completes", "A SEND that has completed has arrived; its receive completes by itself.",
       "IBA 9.7.5.1", "A.0=1",
       "rcv 0 B.0; snd 0 A.0; poll 0; rtry r0 0",
       STRONG("r0=1"), NEVER("r0=0"))

/* ---- READs ---- */
LITMUS("read-late", "A READ that was posted has not read yet.", ORDER, "",
       "get 0 A.0 B.0; st B.0 1; poll 0",
       STRONG("A.0=0"), WEAK("A.0=1"))
LITMUS("read-completed", "A READ that has completed has read.", ORDER, "",
       "get 0 A.0 B.0; poll 0; st B.0 1",
       STRONG("A.0=0"), NEVER("A.0=1"))
LITMUS("read-seen-late", "What a READ reads is not there before its completion.", OWNED, "B.0=1",
       "get 0 A.0 B.0; ld r0 A.0; poll 0",
       STRONG("r0=1"), WEAK("r0=0"))
LITMUS("read-last-word", "The last word of a READ is there, and the first is not.", OWNED, "B.0=1 B.3=1",
       "get 0 A.0 B.0 4; ld r1 A.3; ld r0 A.0; poll 0",
       STRONG("r1=1 r0=1"), WEAK("r1=0 r0=0"), WEAK("r1=1 r0=0"), WEAK("r1=0 r0=1"))
LITMUS("write-read", "A READ sees a WRITE ahead of it.", ORDER, "A.0=1",
       "put 0 B.0 A.0; get 0 A.1 B.0; poll 0; poll 0",
       STRONG("A.1=1"), NEVER("A.1=0"))
LITMUS("write-read-of-two", "Not by another queue pair.", ORDER, "A.0=1",
       "put 0 B.0 A.0; get 1 A.1 B.0; poll 0; poll 1",
       STRONG("A.1=1"), WEAK("A.1=0"))
LITMUS("read-write", "A WRITE overtakes a READ ahead of it.", ORDER, "A.1=1",
       "get 0 A.0 B.0; put 0 B.0 A.1; poll 0; poll 0",
       STRONG("A.0=0"), WEAK("A.0=1"))
LITMUS("read-fence-write", "Not with a fence.", ORDER, "A.1=1",
       "get 0 A.0 B.0; put 0 B.0 A.1 1 f; poll 0; poll 0",
       STRONG("A.0=0"), NEVER("A.0=1"))
LITMUS("read-forward", "A WRITE sends on what a READ ahead of it brings.", ORDER, "B.0=1",
       "get 0 A.0 B.0; put 0 B.1 A.0; poll 0; poll 0",
       STRONG("B.1=1"), WEAK("B.1=0"))
LITMUS("read-fence-forward", "With a fence it does.", ORDER, "B.0=1",
       "get 0 A.0 B.0; put 0 B.1 A.0 1 f; poll 0; poll 0",
       STRONG("B.1=1"), NEVER("B.1=0"))
LITMUS("read-send", "A SEND overtakes a READ ahead of it.", ORDER, "A.1=1",
       "rcv 0 B.1; get 0 A.0 B.0; snd 0 A.1; rpoll 0; st B.0 1; poll 0; poll 0",
       STRONG("A.0=0"), WEAK("A.0=1"))
LITMUS("read-fence-send", "Not with a fence.", ORDER, "A.1=1",
       "rcv 0 B.1; get 0 A.0 B.0; snd 0 A.1 f; rpoll 0; st B.0 1; poll 0; poll 0",
       STRONG("A.0=0"), NEVER("A.0=1"))
LITMUS("read-read", "Two READs of a queue pair read in order.", ORDER, "",
       "get 0 A.0 B.0; get 0 A.1 B.0; poll 0; poll 0 || st B.0 1",
       STRONG("A.0=0 A.1=0"), STRONG("A.0=0 A.1=1"), STRONG("A.0=1 A.1=1"), NEVER("A.0=1 A.1=0"))
LITMUS("read-read-of-two", "Two READs of two queue pairs do not.", ORDER, "",
       "get 0 A.0 B.0; get 1 A.1 B.0; poll 0; poll 1 || st B.0 1",
       STRONG("A.0=0 A.1=0"), STRONG("A.0=0 A.1=1"), STRONG("A.0=1 A.1=1"), WEAK("A.0=1 A.1=0"))

/* ---- atomic operations ---- */
LITMUS("atomic-atomic", "Two atomic operations are one behind the other.", "IBA 9.4.5", "",
       "faa 0 A.0 B.0 1; faa 1 A.1 B.0 1; poll 0; poll 1",
       STRONG("A.0=0 A.1=1 B.0=2"), WEAK("A.0=1 A.1=0 B.0=2"), NEVER("A.0=0 A.1=0"), NEVER("B.0=1"))
LITMUS("atomic-atomic-of-one", "Those of a queue pair are in order.", ORDER, "",
       "faa 0 A.0 B.0 1; faa 0 A.1 B.0 1; poll 0; poll 0",
       STRONG("A.0=0 A.1=1 B.0=2"), NEVER("A.0=1"))
LITMUS("atomic-of-three", "So are those of two nodes.", "IBA 9.4.5", "",
       "faa 0 A.0 B.0 1; poll 0 || faa 5 C.0 B.0 1; poll 5",
       STRONG("A.0=0 C.0=1 B.0=2"), STRONG("A.0=1 C.0=0 B.0=2"), NEVER("A.0=0 C.0=0"))
LITMUS("atomic-result-late", "The old value is not there before the completion.", OWNED, "A.0=9",
       "faa 0 A.0 B.0 1; ld r0 A.0; poll 0",
       STRONG("r0=0"), WEAK("r0=9"))
LITMUS("atomic-store", "A processor's store during an atomic operation is lost.", "IBA 9.4.5", "",
       "faa 0 A.0 B.0 1; st B.0 8; poll 0",
       STRONG("A.0=0 B.0=8"), WEAK("A.0=8 B.0=9"), WEAK("A.0=0 B.0=1"))
LITMUS("atomic-store-completed", "Not behind its completion.", "IBA 9.4.5", "",
       "faa 0 A.0 B.0 1; poll 0; st B.0 8",
       STRONG("A.0=0 B.0=8"), NEVER("A.0=0 B.0=1"))
LITMUS("atomic-write-of-two", "So is a WRITE of another queue pair.", "IBA 9.4.5", "A.1=8",
       "faa 0 A.0 B.0 1; put 1 B.0 A.1; poll 0; poll 1",
       STRONG("A.0=0 B.0=8"), WEAK("A.0=8 B.0=9"), WEAK("A.0=0 B.0=1"))
LITMUS("atomics-all-count", "No atomic operation is lost.", "IBA 9.4.5", "",
       "faa 0 A.0 B.0 1; faa 1 A.1 B.0 1; faa 0 A.2 B.0 1; poll 0; poll 1; poll 0 || faa 5 C.0 B.0 1; poll 5",
       STRONG("B.0=4"), NEVER("B.0=3"), NEVER("B.0=2"), NEVER("B.0=1"))
LITMUS("atomic-read", "A READ sees an atomic operation ahead of it.", ORDER, "",
       "faa 0 A.0 B.0 1; get 0 A.1 B.0; poll 0; poll 0",
       STRONG("A.1=1"), NEVER("A.1=0"))
LITMUS("write-atomic", "An atomic operation sees a WRITE ahead of it.", ORDER, "A.0=5",
       "put 0 B.0 A.0; faa 0 A.1 B.0 1; poll 0; poll 0",
       STRONG("A.1=5 B.0=6"), NEVER("A.1=0"))
LITMUS("atomic-write", "A WRITE overtakes an atomic operation ahead of it.", ORDER, "A.0=5",
       "faa 0 A.1 B.0 1; put 0 B.0 A.0; poll 0; poll 0",
       STRONG("A.1=0 B.0=5"), WEAK("A.1=5 B.0=6"))
LITMUS("atomic-fence-write", "Not with a fence.", ORDER, "A.0=5",
       "faa 0 A.1 B.0 1; put 0 B.0 A.0 1 f; poll 0; poll 0",
       STRONG("A.1=0 B.0=5"), NEVER("A.1=5"))
LITMUS("lock", "A lock by an atomic operation is given back by one, behind the WRITE it guards.",
       ORDER, "A.1=1",
       "put 0 B.1 A.1; faa 0 A.0 B.0 1; poll 0; poll 0 || faa 5 C.0 B.0 1; poll 5; get 5 C.1 B.1; poll 5",
       STRONG("C.0=0"), STRONG("C.0=1 C.1=1"), NEVER("C.0=1 C.1=0"))

/* ---- completions ---- */
LITMUS("completion-late", "A completion comes later than its request is done.", "IBA 11.4.2.1", "A.0=1",
       "put 0 B.0 A.0; try r0 0; ld r1 B.0",
       STRONG("r0=1"), WEAK("r0=0 r1=1"), WEAK("r0=0 r1=0"))
LITMUS("completions-of-two", "Completions of two queue pairs come in any order.", ORDER, "A.0=1",
       "put 0 B.0 A.0; put 1 B.1 A.0; try r1 1; try r0 0",
       STRONG("r1=1 r0=1"), WEAK("r1=1 r0=0"), WEAK("r1=0 r0=1"), WEAK("r1=0 r0=0"))

/* ---- several nodes ---- */
LITMUS("store-buffering", "Each of two nodes writes to the other, and sees nothing.", "RDMA TSO", "A.7=1 B.7=1",
       "put 0 B.0 A.7; ld r0 A.0; poll 0 || put 2 A.0 B.7; ld r1 B.0; poll 2",
       STRONG("r0=0 r1=1"), STRONG("r0=1 r1=0"), STRONG("r0=1 r1=1"), WEAK("r0=0 r1=0"))
LITMUS("store-buffering-polls", "Not if it waits for the completion.", "RDMA TSO", "A.7=1 B.7=1",
       "put 0 B.0 A.7; poll 0; ld r0 A.0 || put 2 A.0 B.7; poll 2; ld r1 B.0",
       STRONG("r0=0 r1=1"), STRONG("r0=1 r1=0"), STRONG("r0=1 r1=1"), NEVER("r0=0 r1=0"))
LITMUS("store-buffering-reads", "Each writes to the other, and reads what it has itself by a READ.",
       "RDMA TSO", "A.7=1 B.7=1",
       "put 0 B.0 A.7; get 0 A.1 B.1; poll 0; poll 0; ld r0 A.0 || put 2 A.0 B.7; get 2 B.1 A.1; poll 2; poll 2; ld r1 B.0",
       STRONG("r0=0 r1=1"), STRONG("r0=1 r1=0"), STRONG("r0=1 r1=1"), NEVER("r0=0 r1=0"))
LITMUS("causality", "What a node has seen, a node that hears of it by RDMA sees, too.", "RDMA TSO", "A.7=1 B.7=1",
       "put 0 B.0 A.7; poll 0 || ld r0 B.0; put 3 C.0 B.7; poll 3 || ld r1 C.0; get 5 C.1 B.0; poll 5",
       STRONG("r0=0"), STRONG("r0=1 r1=0"), STRONG("r0=1 r1=1 C.1=1"), NEVER("r0=1 r1=1 C.1=0"))
LITMUS("two-writers", "Two readers agree on the order of two WRITEs to two nodes.", "RDMA TSO", "A.7=1",
       "put 0 B.0 A.7; put 4 C.0 A.7; poll 0; poll 4 || ld r0 B.0; get 3 B.1 C.0; poll 3 || ld r1 C.0; get 5 C.1 B.0; poll 5",
       NEVER("r0=1 r1=1 B.1=0 C.1=0"), STRONG("r0=0"), STRONG("r0=1"))
LITMUS("message-passing", "A flag that a node writes to a third one behind a WRITE's post.", ORDER, "A.7=1",
       "put 0 B.0 A.7; put 4 C.0 A.7; poll 0; poll 4 || ld r1 C.0; get 5 C.1 B.0; poll 5",
       STRONG("r1=0"), STRONG("r1=1 C.1=1"), WEAK("r1=1 C.1=0"))
LITMUS("message-passing-polls", "Behind its completion.", ORDER, "A.7=1",
       "put 0 B.0 A.7; poll 0; put 4 C.0 A.7; poll 4 || ld r1 C.0; get 5 C.1 B.0; poll 5",
       STRONG("r1=0"), STRONG("r1=1 C.1=1"), NEVER("r1=1 C.1=0"))

/* ---- UC ---- */
LITMUS("uc-source-reused", "A buffer of UC is changed before its WRITE has completed.", OWNED, "A.0=1",
       "put 6 B.0 A.0; st A.0 2; poll 6",
       STRONG("B.0=1"), WEAK("B.0=2"))
LITMUS("uc-write-seen-late", "A WRITE of UC that was posted is not there yet.", ORDER, "A.0=1",
       "put 6 B.0 A.0; ld r0 B.0; poll 6",
       STRONG("r0=1"), WEAK("r0=0"))

/* ---- UD ---- */
LITMUS("datagram-source-reused", "A buffer is changed before its datagram has completed; a datagram may be lost.", OWNED,
       "A.0=1",
       "rcv 7 B.0; snd 7 A.0; st A.0 2; poll 7; rtry r0 7; ld r1 B.0",
       STRONG("r0=1 r1=1"), WEAK("r0=1 r1=2"), WEAK("r0=0 r1=0"))
LITMUS("datagram-inline", "Inline data of a datagram.", "ibv_post_send(3)", "A.0=1",
       "rcv 7 B.0; snd 7 A.0 i; st A.0 2; poll 7; rtry r0 7; ld r1 B.0",
       STRONG("r0=1 r1=1"), WEAK("r0=0 r1=0"), NEVER("r1=2"))
LITMUS("datagrams-in-order", "Datagrams of a queue pair to one receiver stay in order.", "IBA 9.8.3", "A.0=1 A.1=2",
       "rcv 7 B.0; rcv 7 B.1; snd 7 A.0; snd 7 A.1; poll 7; poll 7; rtry r0 7; rtry r1 7",
       STRONG("r1=1 B.0=1 B.1=2"), NEVER("B.0=2 B.1=1"), WEAK("r0=1 r1=0 B.0=1"), WEAK("r1=0"))
LITMUS("datagrams-of-two", "Those to two receivers do not.", "IBA 9.8.3", "A.0=1",
       "rcv 7 B.0; rcv 8 C.0; snd 7 A.0; snd 8 A.0; rtry r1 8; rtry r0 7; poll 7; poll 8",
       STRONG("r1=1 r0=1"), WEAK("r1=1 r0=0"), WEAK("r1=0 r0=1"), WEAK("r1=0 r0=0"))
};
/* clang-format on */

const unsigned litmus_n = sizeof(litmus_table) / sizeof(litmus_table[0]);
