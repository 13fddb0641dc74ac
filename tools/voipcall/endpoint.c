// SPDX-License-Identifier: GPL-2.0
/*
 * The event loop: calls, the listening socket, signals.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "../lib/cli.h"
#include "../lib/clock.h"
#include "call.h"
#include "endpoint.h"
#include "net.h"
#include "report.h"
#include "sdp.h"

/* More at once are refused: each costs the listener 50 packets a second. */
#define MAX_CALLS	1024

/* So many sockets are read before the timers are looked at. */
#define MAX_EVENTS	64

/**
 * struct endpoint - what this process does
 * @opt:	the command line
 * @epoll:	what waits for packets
 * @listener:	socket that waits for calls, -1: none
 * @call:	the calls in progress, a heap by their deadlines: the next one is the first
 * @calls:	their number
 * @failed:	the last call ended before its time
 * @ended:	calls that are over
 */
struct endpoint {
	const struct options	*opt;
	int			epoll;
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

static void put(struct endpoint *e, unsigned int i, struct call *c)
{
	e->call[i] = c;
	c->place = i;
}

/* A call's deadline may be another one now, or its place was another's. */
static void settle(struct endpoint *e, struct call *c)
{
	unsigned int i = c->place, next;

	c->deadline = call_deadline(c);
	for (; i && e->call[(i - 1) / 2]->deadline > c->deadline; i = (i - 1) / 2)
		put(e, i, e->call[(i - 1) / 2]);
	for (; (next = 2 * i + 1) < e->calls; i = next) {
		if (next + 1 < e->calls &&
		    e->call[next + 1]->deadline < e->call[next]->deadline)
			next++;
		if (e->call[next]->deadline >= c->deadline)
			break;
		put(e, i, e->call[next]);
	}
	put(e, i, c);
}

static void watch(struct endpoint *e, int fd, struct call *c)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };

	if (epoll_ctl(e->epoll, EPOLL_CTL_ADD, fd, &event))
		die_errno("cannot wait for packets");
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
	watch(e, fd, c);
	put(e, e->calls++, c);
	settle(e, c);
	return c;
}

/* Report a call that is over. */
static void finish(struct endpoint *e, struct call *c)
{
	e->failed = c->failure[0];
	e->ended++;
	call_marks(c);
	report(c);
	call_free(c);
}

/* Something has happened to a call: it has another deadline, or is over. */
static void check(struct endpoint *e, struct call *c)
{
	struct call *last;

	if (c->state != CALL_DONE) {
		settle(e, c);
		return;
	}
	last = e->call[--e->calls];
	if (last != c) {
		put(e, c->place, last);
		settle(e, last);
	}
	finish(e, c);
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
		if (c) {
			call_datagram(c, &d);
			check(e, c);
		}
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

/* Wait for packets, the next deadline or a signal. */
static int wait_events(struct endpoint *e, struct epoll_event *events, const sigset_t *waiting)
{
	struct timespec ts;
	__s64 left;

	if (!e->calls)
		return epoll_pwait2(e->epoll, events, MAX_EVENTS, NULL, waiting);
	left = e->call[0]->deadline - now(CLOCK_MONOTONIC);
	if (left < 0)
		left = 0;
	ts.tv_sec = left / NSEC_PER_SEC;
	ts.tv_nsec = left % NSEC_PER_SEC;
	return epoll_pwait2(e->epoll, events, MAX_EVENTS, &ts, waiting);
}

/* All deadlines change at once: the heap is made anew. */
static void hang_up(struct endpoint *e)
{
	unsigned int calls = e->calls;

	e->calls = 0;
	for (unsigned int i = 0; i < calls; i++) {
		struct call *c = e->call[i];

		call_hang_up(c);
		if (c->state == CALL_DONE) {
			finish(e, c);
		} else {
			put(e, e->calls++, c);
			settle(e, c);
		}
	}
}

/* Until the calls are over, or, listening, for ever; or until a signal. */
static void run(struct endpoint *e)
{
	struct epoll_event events[MAX_EVENTS];
	bool hung_up = false;
	sigset_t waiting;

	watch_signals(&waiting);
	/* the talk clock is to be exact */
	prctl(PR_SET_TIMERSLACK, 1);
	while (e->calls || (e->listener >= 0 && !hung_up)) {
		int ready = wait_events(e, events, &waiting);
		bool incoming = false;
		__s64 at;

		if (ready < 0 && errno != EINTR)
			die_errno("cannot wait");
		for (int i = 0; i < ready; i++) {
			struct call *c = events[i].data.ptr;

			/* a call that is over is no other event's: each socket has one */
			incoming |= !c;
			if (c) {
				call_readable(c);
				check(e, c);
			}
		}
		at = now(CLOCK_MONOTONIC);
		for (unsigned int n = e->calls; n && e->calls && e->call[0]->deadline <= at; n--) {
			struct call *c = e->call[0];

			call_timers(c, at);
			check(e, c);
		}
		if (incoming && e->listener >= 0)
			take_calls(e);
		if (__atomic_load_n(&interrupts, __ATOMIC_RELAXED) && !hung_up) {
			hung_up = true;
			hang_up(e);
		}
		if (e->listener >= 0 && (hung_up || (e->opt->once && (e->calls || e->ended)))) {
			close(e->listener);
			e->listener = -1;
		}
	}
	close(e->epoll);
}

int endpoint_call(const struct options *o)
{
	struct endpoint e = { .opt = o, .listener = -1, .epoll = epoll_create1(EPOLL_CLOEXEC) };

	add_call(&e, net_connect(o));
	run(&e);
	return e.failed;
}

int endpoint_listen(const struct options *o)
{
	struct endpoint e = {
		.opt = o, .listener = net_listen(o), .epoll = epoll_create1(EPOLL_CLOEXEC),
	};

	watch(&e, e.listener, NULL);
	if (o->sdp)
		sdp_print(o);
	fprintf(stderr, "voipcall: listening at %s port %s\n", o->udp ? "UDP" : "DCCP", o->port);
	run(&e);
	return o->once && e.failed;
}
