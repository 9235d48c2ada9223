/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The attacker's program, run where a victim's libraries look for their daemon: foreign_daemon DIR
 * makes DIR/default and listens at DIR/default/ctl. It hands out shared memory whose tables lie at
 * addresses of its choice. Prints "listens" when it does, and "connected" for every client that
 * sends it a request.
 */
#include "posix.h"
#include "control/socket.h"
#include "shm/layout.h"

#define BYTES (1 << 20)

static int make_part(const struct shm_control *header)
{
	int fd = memfd_create("foreign", MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, BYTES) ||
	    (header && pwrite(fd, header, sizeof(*header), 0) < 0) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		perror("foreign_daemon: memfd");
	return fd;
}

static void answer_hello(struct control_packet *p)
{
	const struct control_hello_reply reply = { .client = 1, .host_index = -1 };
	const struct shm_control header = { .magic = SHM_MAGIC,
		                            .version = SHM_VERSION,
		                            .n_hcas = 1,
		                            .n_ports = 1,
		                            .size = BYTES,
		                            .data_size = BYTES,
		                            .hcas_off = 0x414141410000 };

	memcpy(p->body, &reply, sizeof(reply));
	p->header.bytes = sizeof(reply);
	p->fd[p->n_fds++] = make_part(&header);
	p->fd[p->n_fds++] = make_part(NULL);
}

static void serve(int sock)
{
	struct control_packet p;

	while (!control_receive(sock, &p)) {
		printf("connected\n");
		control_close_fds(&p);
		p.header.bytes = 0;
		p.header.status = 0;
		if (p.header.type == CONTROL_HELLO)
			answer_hello(&p);
		control_send(sock, &p);
		control_close_fds(&p);
	}
	close(sock);
}

int main(int argc, char **argv)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	setlinebuf(stdout);
	umask(0);
	if (argc != 2)
		return 1;
	mkdir(argv[1], 0777);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%.80s/default", argv[1]);
	mkdir(addr.sun_path, 0777);
	strcat(addr.sun_path, "/ctl");
	if (bind(sock, (struct sockaddr *)&addr, sizeof(addr)) || listen(sock, 5)) {
		perror("foreign_daemon");
		return 1;
	}
	printf("listens\n");
	for (;;)
		serve(accept(sock, NULL, NULL));
}
