/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection between two machines (hca/transport/packet_requester.h and packet_responder.c): a requester sends
 * three requests of one packet each, a SEND, an atomic operation and a SEND, to a responder, over a network
 * that loses, repeats and reorders packets, both ways, with a timer that may fire too early; at most FAULTS times. The second request has a response
 * of its own.
 *
 * What is proven: each request is carried out once, in order; a request completes after it was carried out,
 * the atomic operation with what it found; and if faults end, all complete. A fault costs a retry, of which
 * there are enough.
 *
 * The responder keeps requests that come behind a gap, or does not, or loses what it has kept (who kept it does
 * not receive any more); the requester probes behind a loss, or does not. Responses that the requester keeps are
 * not here: they are as late as those that the network reorders.
 *
 * Packets of a message that come one behind the other are carried out at one time: they are one here.
 *
 * PSNs do not come around: how they are compared is wire_psn_diff(). Locks are not here: each half is worked on
 * with its own. There is always a receive; credits only put off what was not begun.
 *
 * Mutants:
 *  1 an acknowledgement completes an atomic operation	2 a gap is carried out
 *  3 a request that comes again is carried out again	4 one that comes again is not acknowledged
 *  5 an atomic operation that comes again is not answered	6 there is no timeout
 *  7 a gap among what is kept is passed over	8 a probe is not sent
 *
 * Functions that it models (tools/check-models.py):
 *  src/client/hca/transport/packet_requester_recovery.c rewind_to_acked 76188ca93714
 *  src/client/hca/transport/packet_requester_recovery.c hca_wire_move_acked 4ad7501e4134
 *  src/client/hca/transport/packet_requester_responses.c acknowledge 5e618fbe4691
 *  src/client/hca/transport/packet_requester_responses.c take_aeth 78ea4e3a6645
 *  src/client/hca/transport/packet_requester_responses.c take_data 9dcf76a6c505
 *  src/client/hca/transport/packet_requester_responses.c hca_wire_response 4158347a57ca
 *  src/client/hca/transport/packet_requester_recovery.c hca_wire_look_at_time 8dea484c5438
 *  src/client/hca/transport/packet_responder.c take_expected 6fb718aa516f
 *  src/client/hca/transport/packet_responder.c take_duplicate eb88f22f9250
 *  src/client/hca/transport/packet_responder.c answer_again 87b7cd4d1a8b
 *  src/client/hca/transport/packet_responder_acks.c refuse a181d2fe246d
 *  src/client/hca/transport/packet_responder.c hca_wire_request 03f2809490c1
 */
#ifndef MUTANT
#define MUTANT 0
#endif

#define REQUESTS 3
#define ATOMIC   1	/* the PSN of the one that is answered */
#define ROOM     4
#ifndef FAULTS
#define FAULTS 2
#endif

mtype = { REQUEST, ACK, NAK, ANSWER };

/* the network, each way: a packet is its kind, its PSN, and what an answer says */
chan there = [ROOM] of { mtype, byte, byte };
chan back = [ROOM] of { mtype, byte, byte };

byte faults;

/* the requester's half of struct shm_wire */
byte psn, acked, beyond, head;
bit recovers;
bit probes;	/* only one packet goes, until something is acknowledged */
byte retries;	/* since something was acknowledged */
byte found;	/* what the atomic operation's completion says */

/* the responder's half */
byte expected, saved;
bit nak_sent;
bit kept[REQUESTS];

byte done[REQUESTS];	/* how often each was carried out */
byte counter;		/* how many were, when the atomic operation was */

/* All that were sent before @to, and are not answered by a response of their own, are done. */
inline acknowledge(to)
{
	do
	:: head < to && head < beyond && (head != ATOMIC || MUTANT == 1) ->
		assert(done[head] == 1);
		head++
	:: else -> break
	od;
	/* what is acknowledged is not behind a request that lacks its answer */
	if
	:: head == ATOMIC && to > ATOMIC -> to = ATOMIC
	:: else
	fi;
	if
	:: to > acked ->
		acked = to;
		recovers = 0;
		probes = 0;
		retries = 0;
		if
		:: psn < acked -> psn = acked
		:: else
		fi
	:: else
	fi
}

/* Each time there was a fault. */
inline go_back()
{
	psn = acked;
	recovers = 1;
	if
	:: probes = !probes
	:: probes = 0
	fi;
	retries++;
	assert(retries <= FAULTS + 1)
}

proctype requester()
{
	mtype kind;
	byte at, value, to;

	do
	/* hca_wire_send() */
	:: atomic { psn < REQUESTS && nfull(there) && (!probes || (psn == acked && MUTANT != 8)) ->
		there ! REQUEST(psn, 0);
		psn++;
		if
		:: psn > beyond -> beyond = psn
		:: else
		fi }
	/* hca_wire_response() */
	:: atomic { back ? kind(at, value) ->
		if
		:: at >= beyond || at + 1 < acked	/* nobody asked for it */
		:: else ->
			to = (kind == ACK -> at + 1 : at);
			if
			:: kind == NAK && at < acked -> to = 0	/* it was told twice */
			:: else
			fi;
			acknowledge(to);
			if
			:: kind == ANSWER && at == acked && head == ATOMIC && at == ATOMIC ->
				found = value;
				assert(found == 1);
				head++;
				acknowledge(head)
			/* the answer before it got lost; or it says that there is a gap */
			:: !recovers && ((kind == ACK && at + 1 > acked) || (kind == NAK && at >= acked)) ->
				go_back()
			:: else
			fi
		fi;
		kind = REQUEST; at = 0; value = 0; to = 0 }
	/* hca_wire_look_at_time(): what was sent is taken for lost */
	:: atomic { MUTANT != 6 && acked < psn && timeout ->
		go_back() }
	:: atomic { acked < psn && faults < FAULTS ->	/* too early */
		faults++;
		go_back() }
	:: head == REQUESTS -> break
	od;
	assert(found == 1)
}

inline carry_out(at)
{
	done[at]++;
	assert(done[at] == 1);
	if
	:: at == ATOMIC -> saved = counter
	:: else
	fi;
	counter++
}

/* take_ahead(): what waited behind the one that was carried out just now, and is still there. */
inline take_ahead()
{
	do
	:: expected < REQUESTS && kept[expected] ->
		kept[expected] = 0;
		carry_out(expected);
		if
		:: expected == ATOMIC -> back ! ANSWER(expected, saved)
		:: else
		fi;
		expected++
	:: expected < REQUESTS && kept[expected] -> kept[expected] = 0	/* another process has it */
	:: MUTANT == 7 && expected + 1 < REQUESTS && kept[expected + 1] -> expected++
	:: else -> break
	od
}

proctype responder()
{
	mtype kind;
	byte at, value;

end:
	do
	:: atomic { len(back) + 2 <= ROOM && nempty(there) ->
		there ? kind(at, value);
		if
		:: at == expected || (at > expected && MUTANT == 2) ->
			carry_out(at);
			expected = at + 1;
			nak_sent = 0;
			if
			:: at == ATOMIC -> back ! ANSWER(at, saved)
			:: else
			fi;
			take_ahead();
			if
			:: expected + 1 < REQUESTS && kept[expected + 1] -> back ! NAK(expected, 0); nak_sent = 1
			:: else ->
				if
				:: expected - 1 != ATOMIC -> back ! ACK(expected - 1, 0)
				:: else
				fi
			fi
		:: at < expected ->
			if
			:: MUTANT == 3 -> carry_out(at)
			:: else
			fi;
			if
			:: at == ATOMIC && MUTANT != 5 -> back ! ANSWER(at, saved)
			:: at != ATOMIC && MUTANT != 4 -> back ! ACK(expected - 1, 0)
			:: else
			fi
		:: else ->
			if
			:: !nak_sent -> back ! NAK(expected, 0); nak_sent = 1
			:: else
			fi;
			if
			:: kept[at] = 1
			:: true
			fi
		fi;
		kind = REQUEST; at = 0; value = 0 }
	od
}

/* Loses, repeats and reorders: the packet at the front goes, or to the end, or a copy of it does. */
proctype network(chan way)
{
	mtype kind;
	byte at, value;

end:
	do
	:: d_step { faults < FAULTS && nempty(way) ->
		way ? kind(at, value); faults++; kind = REQUEST; at = 0; value = 0 }
	:: d_step { faults < FAULTS && nempty(way) ->
		way ? kind(at, value); way ! kind(at, value); faults++; kind = REQUEST; at = 0; value = 0 }
	:: d_step { faults < FAULTS && nempty(way) && nfull(way) ->
		way ? <kind(at, value)>; way ! kind(at, value); faults++; kind = REQUEST; at = 0; value = 0 }
	od
}

init {
	atomic {
		run requester();
		run responder();
		run network(there);
		run network(back)
	}
}
