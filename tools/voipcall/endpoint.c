// SPDX-License-Identifier: GPL-2.0
/*
 * The event loop: calls, the listening socket, signals.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "../lib/cli.h"
#include "../lib/clock.h"
#include "call.h"
#include "endpoint.h"
#include "net.h"
#include "report.h"

/* More at once are refused: each costs the listener 50 packets a second. */
#define MAX_CALLS	1024

/**
 * struct endpoint - what this process does
 * @opt:	the command line
 * @listener:	socket that waits for calls, -1: none
 * @call:	the calls in progress
 * @calls:	their number
 * @failed:	the last call ended before its time
 * @ended:	calls that are over
 */
struct endpoint {
	const struct options	*opt;
	int			listener;
	struct call		*call[MAX_CALLS];
	unsigned int		calls;
	bool			failed;
	unsigned int		ended;
};

static int interrupts;

static void on_signal(int sig)
{
	(void)sig;
	/* whoever insists does not want to wait for a report */
	if (__atomic_add_fetch(&interrupts, 1, __ATOMIC_RELAXED) > 1)
		_exit(1);
}

/* The signals are blocked but while the loop waits: none is missed. */
static void watch_signals(sigset_t *waiting)
{
	struct sigaction sa = { .sa_handler = on_signal };
	sigset_t blocked;

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, waiting);
}

static struct call *find_call(struct endpoint *e, const struct sockaddr_storage *from)
{
	char name[ADDRESS_LEN];

	net_name(from, name);
	for (unsigned int i = 0; i < e->calls; i++) {
		if (!strcmp(e->call[i]->remote, name))
			return e->call[i];
	}
	return NULL;
}

static struct call *add_call(struct endpoint *e, int fd)
{
	struct call *c;

	if (e->calls == MAX_CALLS) {
		close(fd);
		return NULL;
	}
	c = call_new(e->opt, fd, !e->opt->listen);
	e->call[e->calls++] = c;
	return c;
}

/*
 * UDP: the first datagram of a caller, and what else came before its own
 * socket was there. Later ones go to that.
 */
static void take_datagrams(struct endpoint *e)
{
	struct datagram d;
	struct call *c;
	int n, fd;

	while ((n = net_receive(e->listener, &d)) > 0) {
		c = find_call(e, &d.from);
		if (!c) {
			struct rtcp_packet rtcp;
			struct rtp_packet rtp;
			bool is_rtcp = rtcp_is(d.data, d.len);

			/* goodbyes of calls that are over, and noise, start none */
			if (is_rtcp ? !rtcp_parse(&rtcp, d.data, d.len, 0) || rtcp.bye :
				      !rtp_parse(&rtp, d.data, d.len))
				continue;
			fd = net_accept_udp(e->opt, e->listener, &d);
			if (fd < 0)
				continue;
			c = add_call(e, fd);
		}
		if (c)
			call_datagram(c, &d);
	}
}

static void take_calls(struct endpoint *e)
{
	int fd;

	if (e->opt->udp) {
		take_datagrams(e);
		return;
	}
	while ((fd = net_accept_dccp(e->listener)) >= 0)
		add_call(e, fd);
}

/* Report calls that are over and forget them. */
static void reap_calls(struct endpoint *e)
{
	for (unsigned int i = 0; i < e->calls;) {
		struct call *c = e->call[i];

		if (c->state != CALL_DONE) {
			i++;
			continue;
		}
		e->failed = c->failure[0];
		e->ended++;
		call_marks(c);
		report(c);
		call_free(c);
		e->call[i] = e->call[--e->calls];
	}
}

/* Wait for a packet, a deadline or a signal. */
static int wait_event(struct endpoint *e, struct pollfd *p, const sigset_t *waiting)
{
	__s64 deadline = NEVER, left;
	struct timespec ts;

	for (unsigned int i = 0; i < e->calls; i++) {
		__s64 at = call_deadline(e->call[i]);

		if (at < deadline)
			deadline = at;
		p[i] = (struct pollfd) { .fd = e->call[i]->fd, .events = POLLIN };
	}
	p[e->calls] = (struct pollfd) { .fd = e->listener, .events = POLLIN };
	left = deadline - now(CLOCK_MONOTONIC);
	if (left < 0)
		left = 0;
	ts.tv_sec = left / NSEC_PER_SEC;
	ts.tv_nsec = left % NSEC_PER_SEC;
	return ppoll(p, e->calls + 1, deadline == NEVER ? NULL : &ts, waiting);
}

/* Until the calls are over, or, listening, for ever; or until a signal. */
static void run(struct endpoint *e)
{
	static struct pollfd p[MAX_CALLS + 1];
	bool hung_up = false;
	sigset_t waiting;

	watch_signals(&waiting);
	/* the talk clock is to be exact */
	prctl(PR_SET_TIMERSLACK, 1);
	while (e->calls || (e->listener >= 0 && !hung_up)) {
		unsigned int calls = e->calls;
		int ready = wait_event(e, p, &waiting);
		__s64 at;

		if (ready < 0 && errno != EINTR)
			die_errno("cannot wait");
		for (unsigned int i = 0; i < calls && ready > 0; i++) {
			if (p[i].revents)
				call_readable(e->call[i]);
		}
		at = now(CLOCK_MONOTONIC);
		for (unsigned int i = 0; i < calls; i++)
			call_timers(e->call[i], at);
		if (ready > 0 && p[calls].revents)
			take_calls(e);
		if (__atomic_load_n(&interrupts, __ATOMIC_RELAXED) && !hung_up) {
			hung_up = true;
			for (unsigned int i = 0; i < e->calls; i++)
				call_hang_up(e->call[i]);
		}
		reap_calls(e);
		if (e->listener >= 0 && (hung_up || (e->opt->once && (e->calls || e->ended)))) {
			close(e->listener);
			e->listener = -1;
		}
	}
}

int endpoint_call(const struct options *o)
{
	struct endpoint e = { .opt = o, .listener = -1 };

	add_call(&e, net_connect(o));
	run(&e);
	return e.failed;
}

int endpoint_listen(const struct options *o)
{
	struct endpoint e = { .opt = o, .listener = net_listen(o) };

	fprintf(stderr, "voipcall: listening at %s port %s\n", o->udp ? "UDP" : "DCCP", o->port);
	run(&e);
	return o->once && e.failed;
}
