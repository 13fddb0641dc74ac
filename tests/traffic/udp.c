// SPDX-License-Identifier: GPL-2.0
/*
 * abeload send udp: constant-rate or Poisson flows on an absolute schedule.
 *
 * A late packet does not move the ones after it. Packets that are due
 * together cost one wake-up.
 */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "abeload.h"

/**
 * struct source - one flow
 * @fd:		connected socket
 * @rng:	of its gaps
 * @sent:	packets sent, and the next sequence number
 * @counted:	packets sent after the warm-up
 * @refused:	packets the kernel did not take
 */
struct source {
	int		fd;
	__u64		rng;
	__u32		sent;
	__u32		counted;
	__u32		refused;
};

static __s64 gap(const struct send_opts *o, struct source *s)
{
	double mean = NSEC_PER_SEC / o->pps;

	return (__s64)(o->poisson ? rng_exponential(&s->rng, mean) : mean);
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

static void report(const struct send_opts *o, const struct source *s)
{
	FILE *out = json_open(o->json);

	fprintf(out, "{\"cpu\": %.6f, \"udp\": [", cpu_seconds());
	for (unsigned int i = 0; i < o->flows; i++)
		fprintf(out, "%s\n  {\"flow\": %u, \"sent\": %u, \"counted\": %u, \"refused\": %u}",
			i ? "," : "", o->id + i, s[i].sent, s[i].counted, s[i].refused);
	fputs("]}\n", out);
	json_close(out, o->json);
}

int send_udp(const struct send_opts *o)
{
	struct source *s = xcalloc(o->flows, sizeof(*s));
	char *payload = xcalloc(1, o->size);
	__s64 start, jitter = o->jitter;
	struct heap h;

	watch_signals();
	prctl(PR_SET_TIMERSLACK, 1);
	heap_init(&h, o->flows);
	start = now(CLOCK_MONOTONIC);
	if (jitter < 0)
		jitter = (__s64)(NSEC_PER_SEC / o->pps);
	for (unsigned int i = 0; i < o->flows; i++) {
		s[i].rng = rng_seed(o->seed, o->id + i);
		s[i].fd = open_flow(o, SOCK_DGRAM);
		if (connect(s[i].fd, (const struct sockaddr *)&o->to, o->to_len))
			die_errno("cannot reach %s", o->to_text);
		heap_set(&h, i, start + (__s64)(rng_uniform(&s[i].rng) * (double)jitter));
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
		heap_set(&h, flow, due + gap(o, &s[flow]));
	}
	if (o->json)
		report(o, s);
	return 0;
}
