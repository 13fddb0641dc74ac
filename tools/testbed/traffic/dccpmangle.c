// SPDX-License-Identifier: GPL-2.0
/*
 * dccpmangle - a router that does not forward DCCP as it came
 *
 * dccpmangle [OPTION...], see help(). It takes the place of a router's own
 * forwarding, which has to be off, sees all packets and their numbers, and
 * sends garbage with valid checksums to both ends. At the end it prints what
 * it did as one JSON object.
 *
 * Harmless garbage is what RFC 4340 tells receivers to ignore: no call may die
 * of it. All of it may die of the rest: Resets, Close, Mandatory, features.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/if_packet.h>
#include <linux/types.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../../lib/cli.h"
#include "../../lib/fds.h"
#include "../../lib/rng.h"

#define DCCP		33
#define MAX_LEN		1400	/* of a DCCP packet that we make */
#define SLOTS		16	/* remembered packets of a kind */
#define MAX_BACK	20	/* a quarter of the least sequence window, nearly */

enum { REQUEST, RESPONSE, DATA, ACK, DATAACK, CLOSEREQ, CLOSE, RESET, SYNC,
	SYNCACK, TYPES };

struct packet {
	struct iphdr ip;
	__u8 d[2048];	/* from the DCCP header on */
	int len;
};

static struct {
	long count;		/* packets to make */
	unsigned int per_ms;
	bool hostile;
	int sweep;		/* first client port, or 0 */
	int lacking;		/* no option 192, and one in so many data packets lost */
	unsigned int share;	/* genuine packets that are changed, percent */
} cfg = { .count = 10000, .per_ms = 4, .share = 10 };

/* Remembered packets by way: data, acknowledgments, others. */
static struct packet slot[2][3][SLOTS], held;
static int n_slot[2][3];
static __u32 client;		/* who was the first to send */
static __u64 last_ack[2];
static long genuine, acks, made, changed, dropped, reordered, repeated, wrong_sum;
static long n_type[16], n_option[256];
static int in, out;
static __u64 state;

static __u32 rnd(__u32 n)
{
	return (rng_next(&state) >> 32) % n;
}

static __u8 any(void)
{
	/* The edges more often than the rest. */
	switch (rnd(4)) {
	case 0:
		return 0;
	case 1:
		return 255;
	default:
		return rnd(256);
	}
}

/* The header */

static int type(const struct packet *p)
{
	return p->d[8] >> 1 & 15;
}

static int doff(const struct packet *p)
{
	return p->d[4] * 4;
}

static int header(int t)
{
	static const __u8 len[16] = { [REQUEST] = 20, [RESPONSE] = 28,
		[DATA] = 16, [RESET] = 28 };

	return len[t] ?: 24;
}

static bool sane(const struct packet *p)
{
	return p->len >= 16 && p->d[8] & 1 && doff(p) <= p->len &&
	       doff(p) >= header(type(p));
}

static __u64 get48(const __u8 *d)
{
	__u64 n = 0;
	int i;

	for (i = 0; i < 6; i++)
		n = n << 8 | d[i];
	return n;
}

static void put48(__u8 *d, __u64 n)
{
	int i;

	for (i = 5; i >= 0; i--, n >>= 8)
		d[i] = n;
}

static __u32 add(__u32 sum, const __u8 *d, int len)
{
	int i;

	for (i = 0; i + 1 < len; i += 2)
		sum += d[i] << 8 | d[i + 1];
	if (len & 1)
		sum += d[len - 1] << 8;
	return sum;
}

static void checksum(struct packet *p)
{
	int cscov = p->d[5] & 15, covered = p->len;
	__u32 sum;

	if (p->len < 8)
		return;
	if (cscov && doff(p) + (cscov - 1) * 4 < p->len)
		covered = doff(p) + (cscov - 1) * 4;
	p->d[6] = 0;
	p->d[7] = 0;
	sum = add(DCCP + p->len, (__u8 *)&p->ip.saddr, 8);
	sum = add(sum, p->d, covered);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	p->d[6] = ~sum >> 8;
	p->d[7] = ~sum;
}

static void transmit(const struct packet *p)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	__u8 data[sizeof(p->ip) + sizeof(p->d)];
	struct iphdr ip = p->ip;

	ip.tot_len = htons(sizeof(ip) + p->len);
	to.sin_addr.s_addr = ip.daddr;
	memcpy(data, &ip, sizeof(ip));
	memcpy(data + sizeof(ip), p->d, p->len);
	if (sendto(out, data, sizeof(ip) + p->len, 0, (void *)&to,
		   sizeof(to)) < 0 && errno != ENOBUFS)
		die_errno("sendto");
}

/* Changes; each leaves a packet that is whole again, unless it says so. */

/* Make room of n bytes, or if negative take them away. */
static bool shift(struct packet *p, int at, int n)
{
	if (p->len + n > MAX_LEN)
		return false;
	memmove(p->d + at + (n > 0 ? n : 0), p->d + at - (n < 0 ? n : 0),
		p->len - at + (n < 0 ? n : 0));
	p->len += n;
	return true;
}

static void retype(struct packet *p, int t)
{
	__u64 ack = header(type(p)) >= 24 ? get48(p->d + 18) :
		       last_ack[p->ip.saddr != client];
	int old = header(type(p)), new = header(t);

	if (doff(p) + new - old > 1020 || !shift(p, 16, new - old))
		return;
	p->d[4] += (new - old) / 4;
	p->d[8] = t << 1 | 1;
	memset(p->d + 16, 0, new - 16);
	if (t == REQUEST)
		p->d[19] = 42;
	else if (new >= 24)
		put48(p->d + 18, ack);
	if (t == RESPONSE)
		p->d[27] = 42;
	if (t == RESET)
		p->d[24] = rnd(14);
}

static bool put_option(struct packet *p, const __u8 *data, int len, bool first)
{
	int room = (len + 3) / 4 * 4, at = first ? header(type(p)) : doff(p);

	if (room + doff(p) > 1020 || !shift(p, at, room))
		return false;
	memset(p->d + at, 0, room);
	memcpy(p->d + at, data, len);
	p->d[4] += room / 4;
	n_option[data[0]]++;
	return true;
}

static void fill(__u8 *d, int len)
{
	int how = rnd(3), i;

	for (i = 0; i < len; i++)
		d[i] = how == 0 ? 0 : how == 1 ? 255 : any();
}

/* Of feedback, and Data Dropped and RTT Estimate. */
static const __u8 right[] = { 192, 193, 194, 195, 196, 40, 128 };

#define RIGHT	((int)sizeof(right))

static void add_option(struct packet *p)
{
	static const __u8 echo[] = { 6, 8, 10 };
	__u8 o[256];
	int i, n = 1;

	fill(o, sizeof(o));
	switch (rnd(cfg.hostile ? 12 : 9)) {
	case 0:			/* right length */
		o[0] = 192 + 2 * rnd(3);
		o[1] = 6;
		break;
	case 1:			/* any length that fits */
		o[0] = right[rnd(RIGHT)];
		o[1] = 2 + rnd(30);
		break;
	case 2:			/* Loss Intervals, as long as it gets */
		o[0] = 193;
		o[1] = rnd(2) ? 255 : 3 + 9 * rnd(28);
		n = 1 + rnd(3);
		break;
	case 3:			/* Dropped Packets */
		o[0] = 195;
		o[1] = 2 + 3 * rnd(84);
		n = 1 + rnd(3);
		break;
	case 4:			/* Elapsed Time; Timestamp; its Echo; NDP Count */
		o[0] = (const __u8[]){ 43, 41, 42, 37 }[i = rnd(4)];
		o[1] = i == 0 ? 4 + 2 * rnd(2) : i == 1 ? 6 :
		       i == 2 ? echo[rnd(3)] : 2 + rnd(7);
		break;
	case 5:			/* other options of CCIDs, Ack Vectors */
		o[0] = rnd(4) ? 128 + rnd(128) : 38 + rnd(2);
		o[1] = 2 + rnd(20);
		break;
	case 6:			/* length beyond the end, or none */
		o[0] = right[rnd(RIGHT)];
		o[1] = rnd(2);
		put_option(p, o, 2, rnd(2));
		return;
	case 7:
		o[0] = right[rnd(RIGHT)];
		o[1] = 250;
		put_option(p, o, 2 + rnd(4), false);
		return;
	case 8:			/* a flood of short ones */
		o[0] = right[rnd(RIGHT)];
		o[1] = 2 + 4 * rnd(2);
		n = 40;
		break;
	case 9:			/* Mandatory, and then */
		o[0] = 1;
		o[1] = 2 + rnd(254);
		break;
	case 10:		/* feature negotiation */
		o[0] = 32 + rnd(4);
		o[1] = 2 + rnd(12);
		o[2] = rnd(4) ? rnd(10) : any();
		break;
	default:
		o[0] = any();
		o[1] = any();
	}
	for (i = 0; i < n; i++)
		if (!put_option(p, o, o[1] < 2 ? 2 : o[1], rnd(2)))
			break;
}

static void change(struct packet *p)
{
	int t = type(p), n;

	switch (rnd(cfg.hostile ? 14 : 10)) {
	case 0:			/* an acknowledgment of what was not sent, or long ago */
		if (header(t) < 24)
			break;
		n = rnd(4);
		put48(p->d + 18, n == 0 ? rnd(0xffffffff) : get48(p->d + 18) +
		      (n == 1 ? rnd(1000) : n == 2 ? -rnd(1000) : 1 << 30));
		break;
	case 1:
		put48(p->d + 10, get48(p->d + 10) + rnd(2 * MAX_BACK) - MAX_BACK);
		break;
	case 2:			/* another type, known or not */
		do {
			t = rnd(16);
		} while (!cfg.hostile && t >= CLOSEREQ && t <= RESET);
		retype(p, t);
		/* These count only if they are news. */
		if (t >= CLOSEREQ && t <= RESET)
			put48(p->d + 10, get48(p->d + 10) + 1 + rnd(MAX_BACK));
		break;
	case 3:			/* CCVal */
		p->d[5] = (p->d[5] & 15) | rnd(16) << 4;
		break;
	case 4:			/* checksum coverage */
		p->d[5] = (p->d[5] & ~15) | rnd(16);
		break;
	case 5:			/* not whole */
		p->len = rnd(p->len + 1);
		break;
	case 6:			/* not whole */
		n = p->len / 4 + 1;
		p->d[4] = rnd(2) ? rnd(header(t) / 4) :
			  n < 256 ? n + rnd(256 - n) : 255;
		break;
	case 7:			/* payload */
		n = rnd(MAX_LEN - doff(p)) + doff(p);
		if (n > p->len)
			fill(p->d + p->len, n - p->len);
		p->len = n;
		break;
	case 8:			/* reserved bits */
		p->d[8] |= rnd(8) << 5;
		break;
	case 9:
		add_option(p);
		break;
	case 10:		/* from here on not whole */
		for (n = 1 + rnd(4); n && p->len; n--)
			p->d[rnd(p->len < 64 ? p->len : 64)] ^= 1 << rnd(8);
		break;
	case 11:
		fill(p->d + header(t), doff(p) - header(t));
		break;
	case 12:
		p->d[8] = rnd(256);
		break;
	case 13:
		put48(p->d + 10, rnd(2) ? get48(p->d + 10) + rnd(200) :
		      (__u64)rnd(0xffffffff) << 16);
		break;
	}
}

/* At least one option, or else more than one change. */
static void mutate(struct packet *p)
{
	int n = rnd(3);

	/* Feedback is where the options do something. */
	if (rnd(2) && header(type(p)) >= 24)
		add_option(p);
	else
		n++;
	while (n-- > 0 && sane(p))
		change(p);
	if (p->len > 8)
		n_type[type(p)]++;
	checksum(p);
	if (!rnd(50) && p->len > 8) {
		p->d[6] ^= 1;
		wrong_sum++;
	}
}

/*
 * The sweep: the client's port says which option all packets of a call carry,
 * one of right[] with a length of 0 to 16 and one of three fillings.
 */
static int sweep_number(const struct packet *p)
{
	int sport = p->d[0] << 8 | p->d[1], dport = p->d[2] << 8 | p->d[3];

	return (sport >= cfg.sweep ? sport : dport) - cfg.sweep;
}

static bool sweep_option(struct packet *p, bool first)
{
	int n = sweep_number(p), len = n / RIGHT % 17, how = n / RIGHT / 17 % 3;
	__u8 o[16];

	memset(o, how == 1 ? 255 : 0, sizeof(o));
	if (how == 2)
		fill(o, sizeof(o));
	o[0] = right[n % RIGHT];
	o[1] = len;
	return put_option(p, o, len < 2 ? 2 : len, first);
}

static void sweep(struct packet *p)
{
	struct packet copy;
	int t;

	/* Also on types that the ends would not send now. */
	if (type(p) == DATA || type(p) == DATAACK) {
		for (t = 0; t < 16; t++) {
			if (t >= CLOSEREQ && t <= RESET)
				continue;
			copy = *p;
			retype(&copy, t);
			sweep_option(&copy, rnd(2));
			checksum(&copy);
			transmit(&copy);
			n_type[t]++;
			made++;
		}
	}
	/* A length below 2 hides the options that follow. */
	if (sweep_option(p, false)) {
		changed++;
		n_type[type(p)]++;
		checksum(p);
	}
	transmit(p);
}

/* A peer that knows nothing of option 192: no garbage, but each Nth data packet lost. */
static void lack(struct packet *p)
{
	static int n;
	int at = header(type(p));

	if ((type(p) == DATA || type(p) == DATAACK) && ++n % cfg.lacking == 0) {
		dropped++;
		return;
	}
	while (at + 1 < doff(p)) {
		if (p->d[at] < 32) {
			at++;
			continue;
		}
		if (p->d[at] == 192 && p->d[at + 1] >= 2) {
			memset(p->d + at, 0, p->d[at + 1]);	/* padding */
			changed++;
			continue;
		}
		at += p->d[at + 1] < 2 ? doff(p) : p->d[at + 1];
	}
	checksum(p);
	transmit(p);
}

/* What the ends send */

static void forward(struct packet *p)
{
	int way, kind;

	client = client ?: p->ip.saddr;
	way = p->ip.saddr != client;
	genuine++;
	if (!sane(p)) {
		transmit(p);
		return;
	}
	if (header(type(p)) >= 24)
		last_ack[way] = get48(p->d + 18);
	acks += type(p) == ACK || type(p) == DATAACK;
	if (cfg.sweep) {
		sweep(p);
		return;
	}
	if (cfg.lacking) {
		lack(p);
		return;
	}
	/* An end that goes would be hit after its end only. */
	kind = type(p) == DATA ? 0 : type(p) == ACK || type(p) == DATAACK ? 1 : 2;
	if (type(p) != CLOSEREQ && type(p) != CLOSE && type(p) != RESET)
		slot[way][kind][n_slot[way][kind]++ % SLOTS] = *p;
	if (!cfg.hostile && (type(p) < DATA || type(p) > DATAACK)) {
		transmit(p);
		return;
	}

	switch (rnd(100) < cfg.share ? rnd(8) : 8) {
	case 0:
		dropped++;
		return;
	case 1:			/* it will come after the next one */
		if (!held.len) {
			held = *p;
			reordered++;
			return;
		}
		break;
	case 2:
		transmit(p);
		repeated++;
		break;
	case 3 ... 7:
		mutate(p);
		changed++;
		break;
	}
	transmit(p);
	if (held.len) {
		transmit(&held);
		held.len = 0;
	}
}

static void attack(void)
{
	static const int often[] = { 0, 0, 0, 1, 1, 1, 1, 1, 1, 2 };
	int way = rnd(2), kind = often[rnd(10)], n = n_slot[way][kind];
	struct packet p;

	if (!n)
		return;
	/* The newest most often: older feedback does not count. */
	p = slot[way][kind][(n - 1 - (rnd(2) ? 0 : rnd(n < SLOTS ? n : SLOTS))) % SLOTS];
	/* And no number twice. */
	if (kind == 1)
		put48(p.d + 10, get48(p.d + 10) + 1 + rnd(MAX_BACK));
	mutate(&p);
	transmit(&p);
	made++;
}

static void receive(void)
{
	struct sockaddr_ll from;
	socklen_t len = sizeof(from);
	struct packet p = { 0 };
	__u8 data[2048];
	ssize_t n;

	while ((n = recvfrom(in, data, sizeof(data), MSG_DONTWAIT, (void *)&from,
			     &len)) >= 0) {
		if (from.sll_pkttype != PACKET_HOST || n < 20 ||
		    data[0] != 0x45 || data[9] != DCCP)
			continue;
		memcpy(&p.ip, data, 20);
		p.len = ntohs(p.ip.tot_len) - 20;
		if (p.len < 0 || p.len > n - 20)
			continue;
		memcpy(p.d, data + 20, p.len);
		forward(&p);
	}
}

static void numbers(const char *name, const long *n, int count)
{
	const char *comma = "";
	int i;

	printf(", \"%s\": {", name);
	for (i = 0; i < count; i++) {
		if (!n[i])
			continue;
		printf("%s\"%d\": %ld", comma, i, n[i]);
		comma = ", ";
	}
	printf("}");
}

static noreturn void help(int status)
{
	fputs("usage: dccpmangle [OPTION...]\n"
	      "  -n COUNT    packets to make before it ends (10000)\n"
	      "  -m COUNT    of them in a millisecond (4)\n"
	      "  -p PERCENT  of the ends' own packets are changed (10)\n"
	      "  -s SEED     (1)\n"
	      "  -x          garbage that calls may die of\n"
	      "  -S PORT     all calls' options in turn, by the client's port\n"
	      "              from PORT on; until standard input ends\n"
	      "  -L N        no garbage: option 192 is taken off, and each Nth data packet\n"
	      "              lost; until standard input ends\n",
	      status ? stderr : stdout);
	exit(status);
}

int main(int argc, char **argv)
{
	static const struct timespec ms = { 0, 1000000 };
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
	unsigned int i;
	bool endless;
	int c, big = 4 << 20;

	occupy_standard_fds();
	state = 1;
	while ((c = getopt(argc, argv, "n:m:p:s:xS:L:h")) != -1) {
		switch (c) {
		case 'n':
			cfg.count = atol(optarg);
			break;
		case 'm':
			cfg.per_ms = atoi(optarg);
			break;
		case 'p':
			cfg.share = atoi(optarg);
			break;
		case 's':
			state = atol(optarg) + 1;
			break;
		case 'x':
			cfg.hostile = true;
			break;
		case 'S':
			cfg.sweep = atoi(optarg);
			break;
		case 'L':
			cfg.lacking = atoi(optarg);
			break;
		case 'h':
			help(0);
		default:
			help(2);
		}
	}
	for (i = 0; i < 16; i++)
		rnd(2);
	in = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP));
	out = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	if (in < 0 || out < 0)
		die_errno("socket");
	setsockopt(in, SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof(big));
	setsockopt(out, SOL_SOCKET, SO_SNDBUFFORCE, &big, sizeof(big));
	fds[0].fd = in;
	endless = cfg.sweep || cfg.lacking;
	fds[1].fd = endless ? 0 : -1;
	puts("ready");
	fflush(stdout);
	while (endless || made + changed < cfg.count) {
		c = ppoll(fds, 2, endless ? NULL : &ms, NULL);
		if (c < 0)
			die_errno("poll");
		if (fds[0].revents)
			receive();
		if (fds[1].revents)
			break;
		/* Its own packets keep time, as nothing else need to come. */
		if (!c)
			for (i = 0; i < cfg.per_ms; i++)
				attack();
	}
	printf("{\"genuine\": %ld, \"acks\": %ld, ", genuine, acks);
	printf("\"made\": %ld, \"changed\": %ld, ", made, changed);
	printf("\"dropped\": %ld, \"reordered\": %ld, \"repeated\": %ld, ",
	       dropped, reordered, repeated);
	printf("\"wrong_sum\": %ld", wrong_sum);
	numbers("types", n_type, 16);
	numbers("options", n_option, 256);
	printf("}\n");
	return 0;
}
