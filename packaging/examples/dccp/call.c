// SPDX-License-Identifier: GPL-2.0
/*
 * A call over DCCP, in C: sends a frame of speech each 20 ms, with as many bytes as the
 * congestion control has room for.
 *
 *   cc -O2 -Wall call.c -o call
 *   ./call listen 5004            prints what each caller's frames came to
 *   ./call HOST 5004 [SECONDS]    calls
 *
 * call.py does the same, and each can talk to the other.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/dccp.h>
#include <linux/dccp_tfrc.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MS	20
#define SERVICE		0x52545041	/* RTPA, RTP audio (RFC 5762) */

/* The codec's modes: bytes of a frame, as of 64, 32, 16 and 8 kb/s. */
static const unsigned int modes[] = { 160, 80, 40, 20, 0 };

static void die(const char *what)
{
	fprintf(stderr, "call: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* A DCCP socket with the best list of CCIDs that this kernel knows. */
static int dccp_socket(int family)
{
	static const __u8 lists[2][3] = { { 4, 3, 2 }, { 3, 2 } };
	__u32 service = htonl(SERVICE);
	int fd, on = 1, tos = 46 << 2;		/* EF: green where the queue is abe */

	fd = socket(family, SOCK_DCCP, IPPROTO_DCCP);
	if (fd < 0)
		return -1;	/* no DCCP: a real program would go on with UDP */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, SOL_DCCP, DCCP_SOCKOPT_SERVICE, &service, sizeof(service));
	if (setsockopt(fd, SOL_DCCP, DCCP_SOCKOPT_CCID, lists[0], 3) &&
	    setsockopt(fd, SOL_DCCP, DCCP_SOCKOPT_CCID, lists[1], 2))
		die("no CCID");
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
	/* An IPv6 socket may have a peer with an IPv4 address. */
	setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	return fd;
}

/* The largest mode that fits into what may be sent each 20 ms. */
static unsigned int choose(int fd)
{
	struct tfrc_tx_info_ext info = { .interval = FRAME_MS * 1000 };
	socklen_t len = sizeof(info);
	unsigned int i = 0;

	/* CCID 2 has no rate, and CCID 3 no such field: then the largest. */
	if (getsockopt(fd, SOL_DCCP, DCCP_SOCKOPT_CCID_TX_INFO, &info, &len) ||
	    len < sizeof(info) || !info.feedback)
		return modes[0];
	while (modes[i + 1] && modes[i] > info.packet)
		i++;
	return modes[i];
}

static void call(const char *host, const char *port, double seconds)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found, *to;
	unsigned long sent = 0, unsent = 0, bytes = 0;
	unsigned char frame[160] = { 0 };
	struct timespec next;
	int fd = -1, err, ccid = 0;
	socklen_t len = sizeof(ccid);

	err = getaddrinfo(host, port, &hints, &found);
	if (err) {
		fprintf(stderr, "call: %s: %s\n", host, gai_strerror(err));
		exit(1);
	}
	for (to = found; to; to = to->ai_next) {
		fd = dccp_socket(to->ai_family);
		if (fd < 0)
			continue;
		if (!connect(fd, to->ai_addr, to->ai_addrlen))
			break;
		err = errno;
		close(fd);
		errno = err;
	}
	if (!to)
		die(host);
	freeaddrinfo(found);
	getsockopt(fd, SOL_DCCP, DCCP_SOCKOPT_TX_CCID, &ccid, &len);

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (__u32 n = 0; n < seconds * 1000 / FRAME_MS; n++) {
		unsigned int size = choose(fd);
		__u32 number = htonl(n);

		memcpy(frame, &number, sizeof(number));
		if (send(fd, frame, size, 0) >= 0) {
			sent++;
			bytes += size;
		} else if (errno == EAGAIN) {
			unsent++;	/* no room: an old frame is of no use later */
		} else {
			die("send");	/* ECONNRESET, EPIPE: the other side is gone */
		}
		next.tv_nsec += FRAME_MS * 1000000L;
		if (next.tv_nsec >= 1000000000L) {
			next.tv_nsec -= 1000000000L;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	printf("CCID %d: sent %lu frames of %lu bytes, %lu had no room\n", ccid, sent,
	       sent ? bytes / sent : 0, unsent);
	close(fd);
}

/* Takes one caller after the other. */
static void answer(const char *port)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(atoi(port)) };
	unsigned char frame[2048];
	int fd = dccp_socket(AF_INET6), peer;

	if (fd < 0)
		die("no DCCP (modprobe dccp_ipv6)");
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, 5))
		die("listen");
	while ((peer = accept(fd, NULL, NULL)) >= 0) {
		struct pollfd p = { .fd = peer, .events = POLLIN };
		unsigned long got = 0, bytes = 0;
		__u32 number = 0, last = 0;
		ssize_t n;

		/* 5 s without a frame: it has gone without a goodbye. */
		while (poll(&p, 1, 5000) > 0 && (n = recv(peer, frame, sizeof(frame), 0)) > 0) {
			if (n < (ssize_t)sizeof(number))
				continue;
			memcpy(&number, frame, sizeof(number));
			last = ntohl(number) > last ? ntohl(number) : last;
			got++;
			bytes += n;
		}
		printf("got %lu of %lu frames, %lu bytes\n", got, got ? last + 1UL : 0, bytes);
		fflush(stdout);
		close(peer);
	}
	die("accept");
}

int main(int argc, char **argv)
{
	double seconds = argc == 4 ? atof(argv[3]) : 10;

	if (argc < 3 || argc > 4 || atoi(argv[2]) <= 0 || atoi(argv[2]) > 65535 || seconds <= 0) {
		fprintf(stderr, "usage: call listen PORT | call HOST PORT [SECONDS]\n");
		return 2;
	}
	if (!strcmp(argv[1], "listen"))
		answer(argv[2]);
	call(argv[1], argv[2], seconds);
	return 0;
}
