// SPDX-License-Identifier: GPL-2.0
/*
 * abeload send web: users who load pages of files, and are silent in between.
 *
 * A page is some files, each on a TCP connection of its own, from here to the
 * sink, which closes when it has got all. Sizes, numbers and silences follow
 * Barford and Crovella ([BIAS00] II.B: one file after the other), or the
 * WebTraf model of ns-2 ([VOIP05] 7.2: files of a page overlap). A user draws
 * all random numbers in the order of its files, so that the same seed asks for
 * the same pages whatever the network does.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "abeload.h"

/**
 * struct user - one who loads pages
 * @rng:	of everything about it
 * @left:	files of the page that have not begun
 * @open:	files on their way
 * @pages:	pages begun
 */
struct user {
	__u64		rng;
	unsigned int	left;
	unsigned int	open;
	unsigned int	pages;
};

/**
 * struct file - one file, on its way or done
 * @user:	whose
 * @fd:		connection, -1: done
 * @size:	bytes, with the greeting
 * @sent:	bytes given to the kernel
 * @start:	when it began, CLOCK_REALTIME
 * @end:	when the sink had it, 0: not yet, -1: the connection broke
 */
struct file {
	unsigned int	user;
	int		fd;
	__u64		size;
	__u64		sent;
	__s64		start;
	__s64		end;
};

/**
 * struct web - all users of this process
 * @o:		what was asked for
 * @epoll:	connections; data is the index of the file
 * @pages:	zeros
 * @user:	users
 * @next:	when each one does something next of its own accord
 * @file:	files in the order in which they began
 * @files:	their number
 * @room:	allocated
 */
struct web {
	const struct send_opts	*o;
	int			epoll;
	int			pages;
	struct user		*user;
	struct heap		next;
	struct file		*file;
	size_t			files;
	size_t			room;
};

static __u64 draw_size(const struct web_opts *w, __u64 *rng)
{
	double size;

	if (rng_uniform(rng) < w->body) {
		do
			size = exp(w->mu + w->sigma * rng_normal(rng));
		while (size >= w->tail);
	} else {
		size = rng_pareto(rng, w->tail, w->tail_shape) - (w->shifted ? w->tail : 0);
	}
	if (size > w->size_max)
		size = w->size_max;
	/* the greeting is a part of it */
	return size < sizeof(struct tcp_hello) ? sizeof(struct tcp_hello) : (__u64)size;
}

static unsigned int draw_objects(const struct web_opts *w, __u64 *rng)
{
	double n = w->objects;

	if (w->objects_shape > 0)
		n = rng_pareto(rng, w->objects, w->objects_shape);
	return n < 10000 ? (unsigned int)n : 10000;
}

static __s64 draw_off(const struct web_opts *w, __u64 *rng)
{
	double s = w->off_shape > 0 ? rng_pareto(rng, w->off, w->off_shape) :
				      rng_exponential(rng, w->off);

	return (__s64)((s < 1e6 ? s : 1e6) * NSEC_PER_SEC);
}

static void file_start(struct web *w, unsigned int user)
{
	struct user *u = &w->user[user];
	struct epoll_event ev = { .events = EPOLLOUT | EPOLLRDHUP | EPOLLET };
	struct file *f;

	if (w->files == w->room) {
		w->room = w->room ? 2 * w->room : 4096;
		w->file = xrealloc(w->file, w->room, sizeof(*w->file));
	}
	f = &w->file[w->files];
	*f = (struct file) { .user = user, .start = now(CLOCK_REALTIME) };
	f->size = draw_size(&w->o->web, &u->rng);
	f->fd = open_flow(w->o, SOCK_STREAM);
	connect_flow(w->o, f->fd);
	ev.data.u64 = w->files++;
	if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, f->fd, &ev))
		die_errno("epoll");
	u->left--;
	u->open++;
}

/* What the user does at this time: begins a page, or the next file of one. */
static void user_act(struct web *w, unsigned int user, __s64 t)
{
	const struct web_opts *wo = &w->o->web;
	struct user *u = &w->user[user];
	__s64 next = INT64_MAX;

	if (!u->left) {
		u->left = draw_objects(wo, &u->rng);
		u->pages++;
	}
	file_start(w, user);
	if (u->left && wo->gap)
		next = t + (__s64)rng_exponential(&u->rng, (double)wo->gap);
	heap_set(&w->next, user, next);
}

static void file_end(struct web *w, struct file *f, bool whole)
{
	struct user *u = &w->user[f->user];
	__s64 t = now(CLOCK_MONOTONIC);

	f->end = whole ? now(CLOCK_REALTIME) : -1;
	close(f->fd);
	f->fd = -1;
	u->open--;
	if (u->left && !w->o->web.gap)
		heap_set(&w->next, f->user, t);
	else if (!u->left && !u->open)
		heap_set(&w->next, f->user, t + draw_off(&w->o->web, &u->rng));
}

/* Gives the kernel what it takes; false when the connection is broken. */
static bool file_fill(struct web *w, struct file *f)
{
	struct tcp_hello hello = { htonl(PACKET_MAGIC), htonl(w->o->id + f->user) };
	ssize_t n = 0;

	if (!f->sent) {
		n = send(f->fd, &hello, sizeof(hello), f->size > sizeof(hello) ? MSG_MORE : 0);
		if (n == sizeof(hello))
			f->sent = n;
	}
	while (f->sent && f->sent < f->size && n >= 0) {
		n = send_pages(f->fd, w->pages, f->size - f->sent);
		if (n > 0)
			f->sent += n;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return false;
	if (f->sent == f->size)
		shutdown(f->fd, SHUT_WR);
	return true;
}

/* Time-outs happen on a bad path; without a sink there is no point in going on. */
static void file_broken(struct web *w, struct file *f)
{
	int err = 0;
	socklen_t len = sizeof(err);

	getsockopt(f->fd, SOL_SOCKET, SO_ERROR, &err, &len);
	errno = err;
	if (err == ECONNREFUSED)
		die_errno("cannot connect to %s", w->o->to_text);
	file_end(w, f, false);
}

static void file_event(struct web *w, struct file *f, unsigned int events)
{
	if (f->fd < 0)
		return;
	if (events & EPOLLERR)
		file_broken(w, f);
	else if (events & EPOLLRDHUP)
		file_end(w, f, f->sent == f->size);
	else if (events & EPOLLOUT && f->sent < f->size && !file_fill(w, f))
		file_end(w, f, false);
}

static void report(const struct web *w)
{
	FILE *out = json_open(w->o->json);

	fprintf(out, "{\"cpu\": %.6f, \"web\": [", cpu_seconds());
	for (unsigned int i = 0; i < w->o->flows; i++)
		fprintf(out, "%s\n  {\"flow\": %u, \"pages\": %u, \"open\": %u}", i ? "," : "",
			w->o->id + i, w->user[i].pages, w->user[i].open);
	/* flow, bytes, start, end (null: not yet, false: broken) */
	fputs("],\n \"files\": [", out);
	for (size_t i = 0; i < w->files; i++) {
		const struct file *f = &w->file[i];

		fprintf(out, "%s\n  [%u, %llu, %.6f, ", i ? "," : "", w->o->id + f->user,
			(unsigned long long)f->size, (double)f->start / NSEC_PER_SEC);
		if (f->end > 0)
			fprintf(out, "%.6f]", (double)f->end / NSEC_PER_SEC);
		else
			fputs(f->end ? "false]" : "null]", out);
	}
	fputs("]}\n", out);
	json_close(out, w->o->json);
}

int send_web(const struct send_opts *o)
{
	struct web w = { .o = o, .epoll = epoll_create1(EPOLL_CLOEXEC), .pages = open_pages(),
			 .user = xcalloc(o->flows, sizeof(*w.user)) };
	struct epoll_event ev[64];
	__s64 end, t;

	if (w.epoll < 0)
		die_errno("epoll");
	watch_signals();
	prctl(PR_SET_TIMERSLACK, 1);
	heap_init(&w.next, o->flows);
	t = now(CLOCK_MONOTONIC);
	end = t + o->duration;
	for (unsigned int i = 0; i < o->flows; i++) {
		struct user *u = &w.user[i];

		u->rng = rng_seed(o->seed, o->id + i);
		/* not told otherwise, everybody begins in the midst of a silence */
		heap_set(&w.next, i, t + (o->jitter < 0 ? draw_off(&o->web, &u->rng) :
					  (__s64)(rng_uniform(&u->rng) * (double)o->jitter)));
	}

	while (!stop_requested() && (t = now(CLOCK_MONOTONIC)) < end) {
		unsigned int user = w.next.slot[0];
		__s64 at = w.next.at[user];
		struct timespec ts;
		int n;

		if (at <= t) {
			user_act(&w, user, at);
			continue;
		}
		if (at > end)
			at = end;
		ts.tv_sec = (at - t) / NSEC_PER_SEC;
		ts.tv_nsec = (at - t) % NSEC_PER_SEC;
		n = epoll_pwait2(w.epoll, ev, ARRAY_SIZE(ev), &ts, NULL);
		for (int i = 0; i < n; i++)
			file_event(&w, &w.file[ev[i].data.u64], ev[i].events);
	}
	if (o->json)
		report(&w);
	return 0;
}
