#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A program of the verbs on two devices of one host: verbs.c.

. "${0%/*}/lab.sh"

lab_up 1
ip link add h1.1 type veth peer name eth1 netns h1
ip link set h1.1 up
on h1 ip link set eth1 up
on h1 ip address add 198.51.100.1/24 dev eth1
on h1 ip address add 2001:db8:1::1/64 dev eth1
on h1 ip neighbour add 192.0.2.9 lladdr 02:00:00:00:00:09 dev eth0
LAB_ETHERNET=yes expect 0 '*PASSED*' on h1 umbel run --roce eth0,eth1 -- "$programs_dir/roce.verbs"
