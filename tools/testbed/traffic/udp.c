// SPDX-License-Identifier: GPL-2.0
/*
 * abeload send udp: constant-rate or Poisson flows on an absolute schedule.
 * abeload send pareto: ON/OFF flows, both times from a Pareto distribution.
 *
 * A late packet does not move the ones after it. Packets that are due
 * together cost one wake-up.
 *
 * Many ON/OFF flows together are self-similar ([TRANS00] 2.1). A flow that is
 * ON sends at a constant rate. Its times are drawn one after the other and do
 * not depend on the traffic; what is left of an ON time after its last packet
 * is not lost but begins the next one, as the gap between two packets may be
 * longer than an ON time.
 */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "abeload.h"

/**
 * struct source - one flow
 * @fd:		connected socket
 * @rng:	of its times
 * @on_left:	pareto: ns of ON time until the next OFF time, after the next packet
 * @on_total:	pareto: ns of ON time used up
 * @bursts:	pareto: ON times begun
 * @sent:	packets sent, and the next sequence number
 * @counted:	packets sent after the warm-up
 * @refused:	packets the kernel did not take
 */
struct source {
	int		fd;
	__u64		rng;
	__s64		on_left;
	__s64		on_total;
	__u32		bursts;
	__u32		sent;
	__u32		counted;
	__u32		refused;
};

static __s64 gap_udp(const struct send_opts *o, struct source *s)
{
	double mean = NSEC_PER_SEC / o->pps;

	return (__s64)(o->poisson ? rng_exponential(&s->rng, mean) : mean);
}

/* A time with that mean. Nothing that a test could wait for exceeds a million seconds. */
static __s64 pareto(struct source *s, __s64 mean, double shape)
{
	double t = rng_pareto(&s->rng, (double)mean * (shape - 1) / shape, shape);

	return t < 1e15 ? (__s64)t : (__s64)1e15;
}

/* A gap of ON time, and what OFF times fall into it. */
static __s64 gap_pareto(const struct send_opts *o, struct source *s)
{
	__s64 gap = (__s64)(NSEC_PER_SEC / o->pps), off = 0;

	while (s->on_left < gap) {
		off += pareto(s, o->mean_off, o->shape);
		s->on_left += pareto(s, o->mean_on, o->shape);
		s->bursts++;
	}
	s->on_left -= gap;
	s->on_total += gap;
	return gap + off;
}

static void send_one(const struct send_opts *o, struct source *s, unsigned int flow, char *payload,
		     bool warmup)
{
	packet_fill((struct packet *)payload, warmup ? PACKET_F_WARMUP : 0, flow, s->sent++,
		    now(CLOCK_REALTIME));
	if (!warmup)
		s->counted++;
	if (send(s->fd, payload, o->size, 0) < 0) {
		/* a full queue is a loss like any other; so is a receiver that has gone */
		if (errno != ENOBUFS && errno != EAGAIN && errno != ECONNREFUSED)
			die_errno("cannot send to %s", o->to_text);
		s->refused++;
	}
}

static void report(const struct send_opts *o, const struct source *s, bool on_off)
{
	FILE *out = json_open(o->json);

	fprintf(out, "{\"cpu\": %.6f, \"%s\": [", cpu_seconds(), on_off ? "pareto" : "udp");
	for (unsigned int i = 0; i < o->flows; i++) {
		fprintf(out, "%s\n  {\"flow\": %u, \"sent\": %u, \"counted\": %u, \"refused\": %u",
			i ? "," : "", o->id + i, s[i].sent, s[i].counted, s[i].refused);
		if (on_off)
			fprintf(out, ", \"bursts\": %u, \"on\": %.6f", s[i].bursts,
				(double)s[i].on_total / NSEC_PER_SEC);
		fputs("}", out);
	}
	fputs("]}\n", out);
	json_close(out, o->json);
}

static int send_scheduled(const struct send_opts *o, __s64 jitter, bool on_off)
{
	struct source *s = xcalloc(o->flows, sizeof(*s));
	char *payload = xcalloc(1, o->size);
	__s64 start;
	struct heap h;

	watch_signals();
	prctl(PR_SET_TIMERSLACK, 1);
	heap_init(&h, o->flows);
	start = now(CLOCK_MONOTONIC);
	if (o->jitter >= 0)
		jitter = o->jitter;
	for (unsigned int i = 0; i < o->flows; i++) {
		s[i].rng = rng_seed(o->seed, o->id + i);
		s[i].fd = open_flow(o, SOCK_DGRAM);
		if (connect(s[i].fd, (const struct sockaddr *)&o->to, o->to_len))
			die_errno("cannot reach %s", o->to_text);
		heap_set(&h, i, start + (__s64)(rng_uniform(&s[i].rng) * (double)jitter));
		if (on_off) {
			s[i].on_left = pareto(&s[i], o->mean_on, o->shape);
			s[i].bursts = 1;
		}
	}

	while (!stop_requested()) {
		unsigned int flow = h.slot[0];
		__s64 due = h.at[flow];
		struct timespec ts = { due / NSEC_PER_SEC, due % NSEC_PER_SEC };

		if (due >= start + o->duration)
			break;
		if (due > now(CLOCK_MONOTONIC) &&
		    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
			continue;
		send_one(o, &s[flow], o->id + flow, payload, due < start + o->warmup);
		heap_set(&h, flow, due + (on_off ? gap_pareto : gap_udp)(o, &s[flow]));
	}
	if (o->json)
		report(o, s, on_off);
	return 0;
}

int send_udp(const struct send_opts *o)
{
	return send_scheduled(o, (__s64)(NSEC_PER_SEC / o->pps), false);
}

int send_pareto(const struct send_opts *o)
{
	/* as long as a cycle: flows then do not begin together */
	return send_scheduled(o, o->mean_on + o->mean_off, true);
}
