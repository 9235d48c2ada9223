// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * check_icrc FILE: whether the RoCEv2 packets of a capture carry right invariant CRCs. Names each
 * packet that does not; the exit status is 0 if all do and there was one at least.
 */

#include "posix.h"
#include "icrc.h"

/* pcap's file header and packet header, in the byte order of the file's writer: ours. */
struct file_header {
	uint32_t magic;
	uint16_t version[2];
	uint32_t zone[2];
	uint32_t snap_length;
	uint32_t link_type;
};

struct packet_header {
	uint32_t time[2];
	uint32_t captured;
	uint32_t length;
};

/* IP headers end, and UDP's payload, at these offsets of the packet. */
struct layout {
	uint32_t ip;
	uint32_t udp;
	uint32_t end;
};

static uint32_t be16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

/* Where things are in an Ethernet frame; false if it is none of RoCEv2. */
static bool find(const uint8_t *frame, uint32_t length, struct layout *layout)
{
	uint32_t ip = 14;
	uint32_t type = length >= 54 ? be16(frame + 12) : 0;

	if (type == 0x8100) {
		type = be16(frame + 16);
		ip = 18;
	}
	layout->ip = ip;
	if (type == 0x0800 && frame[ip + 9] == 17)
		layout->udp = ip + (frame[ip] & 0xf) * 4;
	else if (type == 0x86dd && frame[ip + 6] == 17)
		layout->udp = ip + 40;
	else
		return false;
	if (layout->udp + 8 > length || be16(frame + layout->udp + 2) != ROCE_PORT)
		return false;
	layout->end = layout->udp + be16(frame + layout->udp + 4);
	return true;
}

static bool check(uint8_t *frame, const struct layout *layout, uint32_t captured, unsigned number)
{
	const uint8_t *at = frame + layout->end - 4;
	uint32_t has, wants;

	if (layout->end > captured || layout->end < layout->udp + 8 + 12 + 4) {
		printf("packet %u is too short for BTH and ICRC, or cut\n", number);
		return false;
	}
	has = at[0] | at[1] << 8 | at[2] << 16 | (uint32_t)at[3] << 24;
	wants = roce_icrc(frame + layout->ip, frame + layout->udp, at);
	if (has != wants)
		printf("packet %u has ICRC 0x%08x, not 0x%08x\n", number, has, wants);
	return has == wants;
}

static int check_file(FILE *file)
{
	static uint8_t frame[UINT16_MAX];
	struct packet_header packet;
	unsigned number = 0, good = 0, bad = 0;
	struct layout layout;

	while (fread(&packet, sizeof(packet), 1, file) == 1) {
		number++;
		if (packet.captured > sizeof(frame) ||
		    fread(frame, 1, packet.captured, file) != packet.captured)
			break;
		if (!find(frame, packet.captured, &layout))
			continue;
		if (check(frame, &layout, packet.captured, number))
			good++;
		else
			bad++;
	}
	printf("%u RoCEv2 packets have the right ICRC, %u have not\n", good, bad);
	return good > 0 && bad == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Its packets are stamped with microseconds, or as newer dumpcaps do it with nanoseconds. */
static bool is_pcap(const struct file_header *header)
{
	return header->magic == 0xa1b2c3d4 || header->magic == 0xa1b23c4d;
}

int main(int argc, char **argv)
{
	struct file_header header;
	FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
	int status;

	if (!file || fread(&header, sizeof(header), 1, file) != 1 || !is_pcap(&header) ||
	    header.link_type != 1) {
		fprintf(stderr, "usage: check_icrc FILE, a pcap file of Ethernet frames\n");
		return EXIT_FAILURE;
	}
	status = check_file(file);
	fclose(file);
	return status;
}
