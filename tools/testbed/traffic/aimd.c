// SPDX-License-Identifier: GPL-2.0
/*
 * abeload send aimd: the rate-based source of [ABE99] Appendix B.
 *
 * It starts with one packet. The receiver acknowledges every packet. A loss
 * halves the rate; a round trip without loss raises it by one packet per
 * round trip. A packet is lost when two packets after it have been
 * acknowledged, or when its timeout expires; nothing is sent again. The round
 * trip is TCP's estimate (RFC 6298). A CE mark is a loss whose packet came.
 *
 * After a loss only packets behind the last acknowledged one are watched, as
 * the appendix says: a second loss in the same flight halves the rate again.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "abeload.h"

#define WINDOW		16384	/* packets in flight that are told apart; a power of two */
#define RTO_FIRST	NSEC_PER_SEC
#define RTO_MIN		(NSEC_PER_SEC / 5)
#define RATE_MIN	(1.0 / 64)
#define RATE_MAX	1e6
#define START_JITTER	(NSEC_PER_SEC / 10)

/**
 * struct aimd - one flow
 * @fd:		connected socket
 * @rate:	packets per second
 * @srtt:	smoothed round trip, ns; 0: no sample yet
 * @rttvar:	its variation, ns
 * @last:	when the last packet was due
 * @epoch:	when the rate may rise next
 * @next:	next sequence number
 * @una:	lowest one that is watched for loss
 * @recover:	packets before it belong to the last loss event
 * @above:	acknowledgments of packets after @una
 * @high:	highest acknowledged sequence number
 * @counted:	packets sent after the warm-up
 * @acks:	acknowledgments
 * @losses:	packets found lost
 * @halvings:	loss events
 * @warm:	when the warm-up ends
 * @started:	the first packet has gone
 * @sent_at:	when each watched packet was sent
 * @acked:	which of them came through
 */
struct aimd {
	int		fd;
	double		rate;
	__s64		srtt;
	__s64		rttvar;
	__s64		last;
	__s64		epoch;
	__u32		next;
	__u32		una;
	__u32		recover;
	__u32		above;
	__u32		high;
	__u64		counted;
	__u64		acks;
	__u64		losses;
	__u64		halvings;
	__s64		warm;
	bool		started;
	__s64		sent_at[WINDOW];
	bool		acked[WINDOW];
};

static bool before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

static __s64 rto(const struct aimd *f)
{
	__s64 t = f->srtt + 4 * f->rttvar;

	if (!f->srtt)
		return RTO_FIRST;
	return t > RTO_MIN ? t : RTO_MIN;
}

static void rtt_sample(struct aimd *f, __s64 rtt, __s64 t)
{
	__s64 error = rtt - f->srtt;

	if (rtt <= 0)
		rtt = 1;
	if (!f->srtt) {
		f->srtt = rtt;
		f->rttvar = rtt / 2;
		f->rate = (double)NSEC_PER_SEC / (double)rtt;
		f->epoch = t + rtt;
		return;
	}
	f->rttvar += ((error < 0 ? -error : error) - f->rttvar) / 4;
	f->srtt += error / 8;
}

/* A loss or a mark of packet @seq: halves the rate unless its event has done so. */
static void congestion(struct aimd *f, __u32 seq, __s64 t)
{
	if (before(seq, f->recover))
		return;
	f->rate /= 2;
	if (f->rate < RATE_MIN)
		f->rate = RATE_MIN;
	f->halvings++;
	f->recover = f->acks ? f->high + 1 : f->next;
	f->epoch = t + f->srtt;
}

/* Gives up the watched packets before @end that were not acknowledged. */
static void lose_until(struct aimd *f, __u32 end, __s64 t)
{
	for (; before(f->una, end); f->una++) {
		if (f->acked[f->una % WINDOW])
			continue;
		f->losses++;
		congestion(f, f->una, t);
	}
	f->above = 0;
}

static void skip_acked(struct aimd *f)
{
	while (before(f->una, f->next) && f->acked[f->una % WINDOW]) {
		f->una++;
		if (f->above)
			f->above--;
	}
}

static void on_ack(struct aimd *f, const struct packet *p, __s64 t)
{
	__u32 seq = ntohl(p->seq);

	if (!before(seq, f->next) || before(seq, f->next - WINDOW))
		return;
	f->acks++;
	rtt_sample(f, now(CLOCK_REALTIME) - packet_stamp(p), t);
	if (p->flags & PACKET_F_CE)
		congestion(f, seq, t);
	if (before(seq, f->una) || f->acked[seq % WINDOW])
		return;
	f->acked[seq % WINDOW] = true;
	if (f->acks == 1 || before(f->high, seq))
		f->high = seq;
	if (seq != f->una)
		f->above++;
	skip_acked(f);
	if (f->above >= 2)
		lose_until(f, f->high, t);
	skip_acked(f);
}

static __s64 next_send(const struct aimd *f)
{
	return f->started ? f->last + (__s64)(NSEC_PER_SEC / f->rate) : f->last;
}

static void send_packet(const struct send_opts *o, struct aimd *f, unsigned int flow, char *payload,
			__s64 t)
{
	if (f->next - f->una >= WINDOW - 1)
		lose_until(f, f->una + 1, t);
	f->sent_at[f->next % WINDOW] = t;
	f->acked[f->next % WINDOW] = false;
	f->counted += t >= f->warm;
	packet_fill((struct packet *)payload, t < f->warm ? PACKET_F_WARMUP : 0, flow, f->next++,
		    now(CLOCK_REALTIME));
	if (send(f->fd, payload, o->size, 0) < 0 && errno != ENOBUFS && errno != EAGAIN &&
	    errno != ECONNREFUSED)
		die_errno("cannot send to %s", o->to_text);
	/* on schedule, but never a burst to make up for being late */
	f->last = next_send(f);
	if (!f->started || f->last < t - (__s64)(NSEC_PER_SEC / f->rate))
		f->last = t;
	f->started = true;
}

/* What is due at @t; returns when something will be next. */
static __s64 run_timers(const struct send_opts *o, struct aimd *f, unsigned int flow,
			char *payload, __s64 t)
{
	__s64 next;

	while (f->una != f->next && f->sent_at[f->una % WINDOW] + rto(f) <= t) {
		lose_until(f, f->una + 1, t);
		skip_acked(f);
	}
	if (f->srtt && f->epoch <= t) {
		f->rate += (double)NSEC_PER_SEC / (double)f->srtt;
		if (f->rate > RATE_MAX)
			f->rate = RATE_MAX;
		f->epoch = t + f->srtt;
	}
	if (next_send(f) <= t)
		send_packet(o, f, flow, payload, t);

	next = next_send(f);
	if (f->srtt && f->epoch < next)
		next = f->epoch;
	if (f->una != f->next && f->sent_at[f->una % WINDOW] + rto(f) < next)
		next = f->sent_at[f->una % WINDOW] + rto(f);
	return next;
}

static void read_acks(const struct send_opts *o, struct aimd *f)
{
	struct packet p;
	ssize_t n;

	while ((n = recv(f->fd, &p, sizeof(p), 0)) >= 0) {
		if (packet_valid(&p, n) && p.kind == PACKET_ACK)
			on_ack(f, &p, now(CLOCK_MONOTONIC));
	}
	if (errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED)
		die_errno("cannot receive from %s", o->to_text);
}

static void report(const struct send_opts *o, const struct aimd *f)
{
	FILE *out = json_open(o->json);

	fprintf(out, "{\"cpu\": %.6f, \"aimd\": [", cpu_seconds());
	for (unsigned int i = 0; i < o->flows; i++, f++) {
		fprintf(out, "%s\n  {\"flow\": %u, \"sent\": %u, \"counted\": %llu", i ? "," : "",
			o->id + i, f->next, (unsigned long long)f->counted);
		fprintf(out, ", \"acks\": %llu, \"losses\": %llu", (unsigned long long)f->acks,
			(unsigned long long)f->losses);
		fprintf(out, ", \"halvings\": %llu, \"rate\": %.3f, \"rtt_us\": %.3f}",
			(unsigned long long)f->halvings, f->rate, (double)f->srtt / NSEC_PER_USEC);
	}
	fputs("]}\n", out);
	json_close(out, o->json);
}

static void watch(int epoll, int fd, unsigned int flow)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = flow };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev))
		die_errno("epoll");
}

int send_aimd(const struct send_opts *o)
{
	__s64 jitter = o->jitter < 0 ? START_JITTER : o->jitter;
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct aimd *f = xcalloc(o->flows, sizeof(*f));
	char *payload = xcalloc(1, o->size);
	struct epoll_event ev[64];
	struct heap h;
	__s64 end, t;

	if (epoll < 0)
		die_errno("epoll");
	watch_signals();
	prctl(PR_SET_TIMERSLACK, 1);
	heap_init(&h, o->flows);
	t = now(CLOCK_MONOTONIC);
	end = t + o->duration;
	for (unsigned int i = 0; i < o->flows; i++) {
		__u64 rng = rng_seed(o->seed, o->id + i);

		f[i].fd = open_flow(o, SOCK_DGRAM);
		if (connect(f[i].fd, (const struct sockaddr *)&o->to, o->to_len))
			die_errno("cannot reach %s", o->to_text);
		watch(epoll, f[i].fd, i);
		f[i].warm = t + o->warmup;
		f[i].rate = (double)NSEC_PER_SEC / RTO_FIRST;
		f[i].last = t + (__s64)(rng_uniform(&rng) * (double)jitter);
		heap_set(&h, i, f[i].last);
	}

	while (!stop_requested() && (t = now(CLOCK_MONOTONIC)) < end) {
		unsigned int flow = h.slot[0];
		__s64 left = (h.at[flow] < end ? h.at[flow] : end) - t;
		struct timespec ts = { left / NSEC_PER_SEC, left % NSEC_PER_SEC };
		int n;

		if (h.at[flow] <= t) {
			heap_set(&h, flow, run_timers(o, &f[flow], o->id + flow, payload, t));
			continue;
		}
		n = epoll_pwait2(epoll, ev, ARRAY_SIZE(ev), &ts, NULL);
		for (int i = 0; i < n; i++) {
			flow = ev[i].data.u32;
			read_acks(o, &f[flow]);
			heap_set(&h, flow, 0);
		}
	}
	if (o->json)
		report(o, f);
	return 0;
}
