/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Topologies that chance has wired: up to six switches with parallel cables and loops, or none;
 * hosts h1 and on, of one HCA with one or two ports each, on switches or back to back; parts
 * that no cable joins. Port 1 of h1, where a subnet manager may run, has a cable.
 */
#ifndef TESTS_PROPERTY_TOPOLOGY_H
#define TESTS_PROPERTY_TOPOLOGY_H

/* Prints one for `umbel up --topology`; the same for the same seed. */
void topology_print(unsigned seed);

#endif
