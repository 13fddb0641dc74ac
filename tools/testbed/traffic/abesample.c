// SPDX-License-Identifier: GPL-2.0
/*
 * abesample: what a qdisc's statistics say, over and over; and what becomes
 * of each packet, by the tracepoints of sch_abe.
 *
 * It runs beside traffic where each instruction costs virtual time: one
 * request and one answer on one netlink socket a sample, no process, no text
 * until the end. Packets are recorded by the kernel into a buffer of their
 * own, which is read when all is over.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <linux/gen_stats.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include "../../../kernel/include/uapi/linux/pkt_sch_abe.h"
#include "../../lib/cli.h"
#include "../../lib/clock.h"
#include "../../lib/fds.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define TRACEFS		"/sys/kernel/tracing"
#define Q31		((double)(1U << 31))

static const char help_text[] =
"usage: abesample --dev DEV [--handle H | --parent P] --out FILE [OPTION...]\n"
"       abesample --trace --out FILE [OPTION...]\n"
"\n"
"Samples the statistics of a qdisc in this network namespace:\n"
"  abesample --dev r2 --handle 10: --interval 0.05 --duration 60 --out /out/queue\n"
"  --dev DEV        interface\n"
"  --handle H       qdisc with this handle, as 10:\n"
"  --parent P       qdisc below this class, as 2:1 (neither: the root)\n"
"  --interval S     between two samples (0.05)\n"
"The first line of FILE names the columns, separated by commas: time\n"
"(CLOCK_REALTIME, s), qlen (packets) and backlog (bytes) now; packets, bytes\n"
"sent, drops, overlimits and marks so far. Marks are known for abe, red, pie,\n"
"fq_codel, codel and cake. For abe then: average (its unit), probability,\n"
"alpha, target, offset_us, delay_blue_us, delay_green_us, loss_blue,\n"
"loss_green_early, loss_green_late, share, ahead, and for green and blue\n"
"arrived, sent, qlen, backlog, early, late, limit, marks.\n"
"\n"
"Or records each packet that abe drops or sends, in all network namespaces:\n"
"  abesample --trace --duration 60 --out /out/packets\n"
"  --trace          columns: time (CLOCK_REALTIME, s), ifindex, handle, what\n"
"                   became of it (sent, early, late, limit), colour, len, and\n"
"                   the time in the queue, ns (0 if dropped)\n"
"  --handle H       only the qdiscs with this handle\n"
"  --buffer MB      memory for records, about 40 bytes a packet (64)\n"
"Ends with an error if records were lost for want of it.\n"
"\n"
"Both print \"ready\" when they have begun.\n"
"  --duration S     end after S seconds (or on SIGINT, SIGTERM)\n"
"  --out FILE       written at the end\n"
"\n"
"Exit: 0 done, 1 failed, 2 wrong usage.\n";

/**
 * struct opts - the command line
 * @dev:	interface
 * @handle:	of the qdisc, 0: not given
 * @parent:	of the qdisc, 0: not given
 * @trace:	record packets instead
 * @interval:	ns
 * @duration:	ns, 0: until a signal
 * @buffer_mb:	of trace records
 * @out:	file
 */
struct opts {
	const char	*dev;
	__u32		handle;
	__u32		parent;
	bool		trace;
	__s64		interval;
	__s64		duration;
	unsigned int	buffer_mb;
	const char	*out;
};

/**
 * struct abe_stats - statistics of abe, by their attributes; 0 where there is none
 * @x:		TCA_ABE_STATS_*
 * @green:	TCA_ABE_COLOUR_*
 * @blue:	likewise
 */
struct abe_stats {
	__u64	x[TCA_ABE_STATS_MAX + 1];
	__u64	green[TCA_ABE_COLOUR_MAX + 1];
	__u64	blue[TCA_ABE_COLOUR_MAX + 1];
};

/* One sample. */
struct sample {
	__s64			time;
	struct gnet_stats_queue	queue;
	__u64			packets;
	__u64			bytes;
	__u64			marks;
	bool			abe;
	struct abe_stats	stats;
};

/**
 * struct records - bytes that grow
 * @data:	them
 * @len:	used
 * @room:	allocated
 */
struct records {
	char	*data;
	size_t	len;
	size_t	room;
};

static int stop_flag;

static void on_signal(int sig)
{
	(void)sig;
	__atomic_store_n(&stop_flag, 1, __ATOMIC_RELAXED);
}

static bool stop_requested(void)
{
	return __atomic_load_n(&stop_flag, __ATOMIC_RELAXED);
}

static void *append(struct records *r, size_t len)
{
	if (r->len + len > r->room) {
		r->room = 2 * (r->room + len) + (1 << 16);
		r->data = realloc(r->data, r->room);
		if (!r->data)
			die_error(ENOMEM, "samples");
	}
	r->len += len;
	return r->data + r->len - len;
}

/* Sleeps until then, CLOCK_MONOTONIC; false when told to stop. */
static bool sleep_until(__s64 t)
{
	struct timespec ts = { t / NSEC_PER_SEC, t % NSEC_PER_SEC };

	while (!stop_requested() && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
	return !stop_requested();
}

static void say_ready(void)
{
	puts("ready");
	fflush(stdout);
}

static FILE *open_out(const struct opts *o)
{
	FILE *f = fopen(o->out, "w");

	if (!f)
		die_errno("cannot write %s", o->out);
	return f;
}

static void close_out(FILE *f, const struct opts *o)
{
	bool bad = ferror(f);

	if (fclose(f) || bad)
		die_error(EIO, "cannot write %s", o->out);
}

/* ---- statistics by netlink */

static int open_netlink(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		die_errno("netlink");
	return fd;
}

/* The attribute of that type among len bytes, or NULL; its payload's length in *size. */
static const void *find_attr(const void *data, int len, int type, int *size)
{
	for (const struct rtattr *a = data; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		if ((a->rta_type & NLA_TYPE_MASK) == type) {
			*size = RTA_PAYLOAD(a);
			return RTA_DATA(a);
		}
	}
	return NULL;
}

static void copy_attr(void *to, size_t room, const void *data, int len, int type)
{
	int size;
	const void *p = find_attr(data, len, type, &size);

	if (p)
		memcpy(to, p, (size_t)size < room ? (size_t)size : room);
}

/* cake counts marks for each tin. */
static __u64 cake_marks(const void *app, int len)
{
	int tins_len, size;
	const void *tins = find_attr(app, len, TCA_CAKE_STATS_TIN_STATS, &tins_len);
	__u64 marks = 0;

	if (!tins)
		return 0;
	for (const struct rtattr *a = tins; RTA_OK(a, tins_len); a = RTA_NEXT(a, tins_len)) {
		const __u32 *p = find_attr(RTA_DATA(a), RTA_PAYLOAD(a),
					   TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS, &size);

		marks += p && size >= 4 ? *p : 0;
	}
	return marks;
}

/* Packets marked so far, as the kind of qdisc tells it. */
static __u64 marks_of(const char *kind, const void *app, int len)
{
	if (!strcmp(kind, "red") && len >= (int)sizeof(struct tc_red_xstats))
		return ((const struct tc_red_xstats *)app)->marked;
	if (!strcmp(kind, "pie") && len >= (int)sizeof(struct tc_pie_xstats))
		return ((const struct tc_pie_xstats *)app)->ecn_mark;
	if (!strcmp(kind, "codel") && len >= (int)sizeof(struct tc_codel_xstats))
		return ((const struct tc_codel_xstats *)app)->ecn_mark;
	if (!strcmp(kind, "fq_codel") && len >= (int)sizeof(struct tc_fq_codel_xstats))
		return ((const struct tc_fq_codel_xstats *)app)->qdisc_stats.ecn_mark;
	if (!strcmp(kind, "cake"))
		return cake_marks(app, len);
	return 0;
}

/* All numbers among the attributes up to max. */
static void copy_numbers(__u64 *values, int max, const void *data, int len)
{
	for (const struct rtattr *a = data; RTA_OK(a, len); a = RTA_NEXT(a, len))
		if ((a->rta_type & NLA_TYPE_MASK) <= max && RTA_PAYLOAD(a) == sizeof(*values))
			memcpy(&values[a->rta_type & NLA_TYPE_MASK], RTA_DATA(a), sizeof(*values));
}

static void parse_abe(struct abe_stats *s, const void *app, int len)
{
	const void *nest;
	int size;

	copy_numbers(s->x, TCA_ABE_STATS_MAX, app, len);
	nest = find_attr(app, len, TCA_ABE_STATS_GREEN, &size);
	if (nest)
		copy_numbers(s->green, TCA_ABE_COLOUR_MAX, nest, size);
	nest = find_attr(app, len, TCA_ABE_STATS_BLUE, &size);
	if (nest)
		copy_numbers(s->blue, TCA_ABE_COLOUR_MAX, nest, size);
}

static void parse_stats(struct sample *s, const char *kind, const void *stats, int len)
{
	struct gnet_stats_basic basic = { 0 };
	const void *app;
	int app_len;

	copy_attr(&basic, sizeof(basic), stats, len, TCA_STATS_BASIC);
	copy_attr(&s->queue, sizeof(s->queue), stats, len, TCA_STATS_QUEUE);
	s->bytes = basic.bytes;
	s->packets = basic.packets;
	copy_attr(&s->packets, sizeof(s->packets), stats, len, TCA_STATS_PKT64);
	app = find_attr(stats, len, TCA_STATS_APP, &app_len);
	if (!app)
		return;
	if (!strcmp(kind, "abe")) {
		s->abe = true;
		parse_abe(&s->stats, app, app_len);
		s->marks = s->stats.green[TCA_ABE_COLOUR_MARKS] +
			   s->stats.blue[TCA_ABE_COLOUR_MARKS];
	} else {
		s->marks = marks_of(kind, app, app_len);
	}
}

/* Asks for the qdisc and reads the answer. */
static void take_sample(int fd, const struct opts *o, unsigned int ifindex, struct sample *s)
{
	static char buf[16384] __attribute__((aligned(8)));
	struct {
		struct nlmsghdr	h;
		struct tcmsg	tc;
	} request = {
		/* the kernel sends it to who asks for an echo only */
		.h = { sizeof(request), RTM_GETQDISC, NLM_F_REQUEST | NLM_F_ECHO, 0, 0 },
		.tc = { .tcm_family = AF_UNSPEC, .tcm_ifindex = ifindex, .tcm_handle = o->handle,
			.tcm_parent = o->parent },
	};
	const struct nlmsghdr *h = (const struct nlmsghdr *)buf;
	const struct tcmsg *tc = NLMSG_DATA(h);
	const void *kind, *stats;
	int len, size;

	if (!o->handle && !o->parent)
		request.tc.tcm_parent = TC_H_ROOT;
	s->time = now(CLOCK_REALTIME);
	if (send(fd, &request, sizeof(request), 0) < 0)
		die_errno("netlink");
	len = recv(fd, buf, sizeof(buf), 0);
	if (len < 0)
		die_errno("netlink");
	if (!NLMSG_OK(h, (unsigned int)len))
		die_error(EPROTO, "netlink");
	if (h->nlmsg_type == NLMSG_ERROR)
		die_error(-*(const int *)NLMSG_DATA(h), "%s: no such qdisc", o->dev);
	len = TCA_PAYLOAD(h);
	kind = find_attr(TCA_RTA(tc), len, TCA_KIND, &size);
	stats = find_attr(TCA_RTA(tc), len, TCA_STATS2, &size);
	if (!kind || !stats)
		die_error(EPROTO, "%s: no statistics", o->dev);
	parse_stats(s, kind, stats, size);
}

static void print_colour(FILE *f, const __u64 *colour)
{
	static const int attrs[] = { TCA_ABE_COLOUR_ARRIVED, TCA_ABE_COLOUR_SENT,
				     TCA_ABE_COLOUR_QLEN, TCA_ABE_COLOUR_BACKLOG,
				     TCA_ABE_COLOUR_EARLY_DROPS, TCA_ABE_COLOUR_LATE_DROPS,
				     TCA_ABE_COLOUR_LIMIT_DROPS, TCA_ABE_COLOUR_MARKS };

	for (size_t i = 0; i < ARRAY_SIZE(attrs); i++)
		fprintf(f, ",%llu", (unsigned long long)colour[attrs[i]]);
}

static void print_abe(FILE *f, const struct abe_stats *s)
{
	const __u64 *x = s->x;

	fprintf(f, ",%.3f,%.9g,%.4f,%.4f,%llu,%llu,%llu",
		x[TCA_ABE_STATS_AVERAGE] / 4294967296.0, x[TCA_ABE_STATS_PROBABILITY] / Q31,
		x[TCA_ABE_STATS_ALPHA] / 65536.0, x[TCA_ABE_STATS_ALPHA_TARGET] / 65536.0,
		(unsigned long long)x[TCA_ABE_STATS_OFFSET],
		(unsigned long long)x[TCA_ABE_STATS_DELAY_BLUE],
		(unsigned long long)x[TCA_ABE_STATS_DELAY_GREEN]);
	fprintf(f, ",%.6g,%.6g,%.6g,%.6g,%llu", x[TCA_ABE_STATS_LOSS_BLUE] / Q31,
		x[TCA_ABE_STATS_LOSS_GREEN_EARLY] / Q31, x[TCA_ABE_STATS_LOSS_GREEN_LATE] / Q31,
		x[TCA_ABE_STATS_GREEN_SHARE] / Q31,
		(unsigned long long)x[TCA_ABE_STATS_GREEN_AHEAD]);
	print_colour(f, s->green);
	print_colour(f, s->blue);
}

static void write_samples(const struct opts *o, const struct records *r)
{
	static const char *const counts[] = { "arrived", "sent", "qlen", "backlog", "early", "late",
					      "limit", "marks" };
	const struct sample *s = (const struct sample *)r->data;
	size_t n = r->len / sizeof(*s);
	FILE *f = open_out(o);

	fputs("time,qlen,backlog,packets,bytes,drops,overlimits,marks", f);
	if (n && s->abe) {
		fputs(",average,probability,alpha,target,offset_us,delay_blue_us", f);
		fputs(",delay_green_us,loss_blue,loss_green_early,loss_green_late", f);
		fputs(",share,ahead", f);
		for (size_t i = 0; i < 2 * ARRAY_SIZE(counts); i++)
			fprintf(f, ",%s_%s", i < ARRAY_SIZE(counts) ? "green" : "blue",
				counts[i % ARRAY_SIZE(counts)]);
	}
	fputc('\n', f);
	for (; n--; s++) {
		fprintf(f, "%lld.%06lld,%u,%u,%llu,%llu,%u,%u,%llu",
			(long long)(s->time / NSEC_PER_SEC),
			(long long)(s->time % NSEC_PER_SEC / 1000), s->queue.qlen,
			s->queue.backlog, (unsigned long long)s->packets,
			(unsigned long long)s->bytes, s->queue.drops, s->queue.overlimits,
			(unsigned long long)s->marks);
		if (s->abe)
			print_abe(f, &s->stats);
		fputc('\n', f);
	}
	close_out(f, o);
}

static int run_samples(const struct opts *o)
{
	unsigned int ifindex = if_nametoindex(o->dev);
	struct records r = { 0 };
	int fd = open_netlink();
	__s64 start, at;

	if (!ifindex)
		die_errno("%s", o->dev);
	start = now(CLOCK_MONOTONIC);
	for (at = start; !o->duration || at <= start + o->duration; at += o->interval) {
		struct sample *s;

		if (at > start && !sleep_until(at))
			break;
		s = append(&r, sizeof(*s));
		memset(s, 0, sizeof(*s));
		take_sample(fd, o, ifindex, s);
		if (at == start)
			say_ready();
	}
	write_samples(o, &r);
	close(fd);
	return 0;
}

/* ---- packets by tracepoints */

/* Where a field of an event is in its record. */
struct field {
	const char	*name;
	unsigned int	offset;
	unsigned int	size;
};

/* One of the two events; the fields that it has not stay at size 0. */
struct event {
	const char	*name;
	unsigned int	id;
	struct field	ifindex, handle, colour, stage, len, sojourn;
};

static char instance[64];

static void __printf(2, 3) write_trace(const char *value, const char *fmt, ...)
{
	char path[256];
	va_list ap;
	int fd;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		die_errno("%s", path);
	close(fd);
}

static void remove_instance(void)
{
	rmdir(instance);
}

static unsigned int field_of(const char *text, const char *name, unsigned int *size)
{
	char wanted[40];
	unsigned int offset;
	const char *at;

	snprintf(wanted, sizeof(wanted), " %s;", name);
	at = strstr(text, wanted);
	if (!at || sscanf(strchr(at, ';') + 1, " offset:%u; size:%u;", &offset, size) != 2)
		die_error(EPROTO, "tracepoint field %s", name);
	return offset;
}

static void read_event(struct event *e)
{
	struct field *fields[] = { &e->ifindex, &e->handle, &e->colour, &e->len,
				   strcmp(e->name, "abe_drop") ? &e->sojourn : &e->stage };
	char path[256], text[4096];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/events/abe/%s/format", instance, e->name);
	f = fopen(path, "r");
	if (!f)
		die_errno("%s (is sch_abe loaded?)", path);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	fclose(f);
	if (!strstr(text, "ID: ") || sscanf(strstr(text, "ID: "), "ID: %u", &e->id) != 1)
		die_error(EPROTO, "%s", path);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		fields[i]->offset = field_of(text, fields[i]->name, &fields[i]->size);
}

static __u64 field_get(const char *record, const struct field *f)
{
	__u64 value = 0;

	memcpy(&value, record + f->offset, f->size < sizeof(value) ? f->size : sizeof(value));
	return value;
}

static void print_record(FILE *out, const struct event *events, const char *record, __s64 time)
{
	static const char *const stages[] = { "early", "late", "limit" };
	unsigned short id;
	__u64 stage;

	memcpy(&id, record, sizeof(id));
	if (id != events[0].id && id != events[1].id)
		return;
	events += id != events[0].id;
	stage = field_get(record, &events->stage);
	fprintf(out, "%lld.%09lld,%llu,%llx:,%s,%s,%llu,%llu\n", (long long)(time / NSEC_PER_SEC),
		(long long)(time % NSEC_PER_SEC),
		(unsigned long long)field_get(record, &events->ifindex),
		(unsigned long long)field_get(record, &events->handle) >> 16,
		events->sojourn.size ? "sent" : stage < ARRAY_SIZE(stages) ? stages[stage] : "?",
		field_get(record, &events->colour) ? "green" : "blue",
		(unsigned long long)field_get(record, &events->len),
		(unsigned long long)field_get(record, &events->sojourn));
}

/*
 * A page of the ring buffer: when it begins (u64), how much of it is used,
 * then entries that begin with 5 bits of type and 27 of time since the last
 * (include/linux/ring_buffer.h).
 */
static void print_page(FILE *out, const struct event *events, const char *page, size_t len,
		       __s64 to_real)
{
	size_t at = 16;
	__u64 time, used;

	memcpy(&time, page, 8);
	memcpy(&used, page + 8, 8);
	used = (used & 0xfffff) + 16;
	if (used > len)
		die_error(EPROTO, "trace buffer");
	while (at + 4 <= used) {
		__u32 head, word = 0;
		unsigned int type;

		memcpy(&head, page + at, 4);
		if (at + 8 <= used)
			memcpy(&word, page + at + 4, 4);
		type = head & 31;
		at += 4;
		switch (type) {
		case 29:	/* padding: its length follows; without a time, to the end */
			if (!(head >> 5))
				return;
			time += head >> 5;
			at += word;
			break;
		case 30:	/* a long time since the last entry */
			time += (head >> 5) + ((__u64)word << 27);
			at += 4;
			break;
		case 31:	/* an absolute time, without its upper bits */
			time = (time & ~((1ULL << 59) - 1)) | ((head >> 5) + ((__u64)word << 27));
			at += 4;
			break;
		default:
			time += head >> 5;
			if (type) {
				print_record(out, events, page + at, (__s64)time + to_real);
				at += 4 * type;
			} else {
				print_record(out, events, page + at + 4, (__s64)time + to_real);
				at += (word + 3) & ~3U;
			}
		}
	}
}

/* Records that a CPU's buffer had no room for. */
static unsigned long count_lost(unsigned int cpu)
{
	static const char *const names[] = { "\noverrun: ", "\ndropped events: " };
	char path[256], text[1024];
	unsigned long lost = 0;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/per_cpu/cpu%u/stats", instance, cpu);
	f = fopen(path, "r");
	if (!f)
		die_errno("%s", path);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	fclose(f);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *at = strstr(text, names[i]);

		lost += at ? strtoul(at + strlen(names[i]), NULL, 10) : 0;
	}
	return lost;
}

/* Empties one CPU's buffer; false when there is no such CPU. */
static bool read_cpu(FILE *out, const struct event *events, unsigned int cpu, __s64 to_real,
		     unsigned long *lost)
{
	static char page[65536];
	char path[256];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/per_cpu/cpu%u/trace_pipe_raw", instance, cpu);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	*lost += count_lost(cpu);
	/* one page of the buffer a read, whatever the room */
	while ((n = read(fd, page, sysconf(_SC_PAGESIZE))) > 16)
		print_page(out, events, page, n, to_real);
	close(fd);
	return true;
}

static int run_trace(const struct opts *o)
{
	struct event events[] = {
		{ "abe_drop", 0, { "ifindex", 0, 0 }, { "handle", 0, 0 }, { "colour", 0, 0 },
		  { "stage", 0, 0 }, { "len", 0, 0 }, { "sojourn", 0, 0 } },
		{ "abe_dequeue", 0, { "ifindex", 0, 0 }, { "handle", 0, 0 }, { "colour", 0, 0 },
		  { "stage", 0, 0 }, { "len", 0, 0 }, { "sojourn", 0, 0 } },
	};
	__s64 to_real = now(CLOCK_REALTIME) - now(CLOCK_MONOTONIC);
	unsigned long lost = 0;
	char text[64];
	FILE *out;

	snprintf(instance, sizeof(instance), TRACEFS "/instances/abesample.%d", getpid());
	/* "ip netns exec" hides it */
	if (access(TRACEFS "/instances", F_OK) && mount("tracefs", TRACEFS, "tracefs", 0, NULL))
		die_errno("tracefs");
	if (mkdir(instance, 0700))
		die_errno("%s", instance);
	atexit(remove_instance);
	snprintf(text, sizeof(text), "%u", o->buffer_mb << 10);
	write_trace(text, "%s/buffer_size_kb", instance);
	write_trace("0", "%s/options/overwrite", instance);
	write_trace("mono", "%s/trace_clock", instance);
	snprintf(text, sizeof(text), "handle == %u", o->handle);
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		read_event(&events[i]);
		if (o->handle)
			write_trace(text, "%s/events/abe/%s/filter", instance, events[i].name);
		write_trace("1", "%s/events/abe/%s/enable", instance, events[i].name);
	}
	say_ready();
	sleep_until(o->duration ? now(CLOCK_MONOTONIC) + o->duration : INT64_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		write_trace("0", "%s/events/abe/%s/enable", instance, events[i].name);

	out = open_out(o);
	fputs("time,ifindex,handle,what,colour,len,sojourn_ns\n", out);
	for (unsigned int cpu = 0; read_cpu(out, events, cpu, to_real, &lost); cpu++)
		;
	close_out(out, o);
	if (lost)
		die("%lu records lost: more --buffer is needed", lost);
	return 0;
}

/* ---- command line */

enum option_id {
	OPT_HELP = 1, OPT_DEV, OPT_HANDLE, OPT_PARENT, OPT_TRACE, OPT_INTERVAL, OPT_DURATION,
	OPT_BUFFER, OPT_OUT,
};

static const struct option options[] = {
	{ "help", no_argument, NULL, OPT_HELP }, { "trace", no_argument, NULL, OPT_TRACE },
	{ "dev", required_argument, NULL, OPT_DEV },
	{ "handle", required_argument, NULL, OPT_HANDLE },
	{ "parent", required_argument, NULL, OPT_PARENT },
	{ "interval", required_argument, NULL, OPT_INTERVAL },
	{ "duration", required_argument, NULL, OPT_DURATION },
	{ "buffer", required_argument, NULL, OPT_BUFFER },
	{ "out", required_argument, NULL, OPT_OUT }, { 0 }
};

/* MAJOR:[MINOR] in hexadecimal digits. */
static __u32 get_handle(const char *option)
{
	unsigned long major, minor = 0;
	char *end;

	errno = 0;
	major = strtoul(optarg, &end, 16);
	if (errno || end == optarg || *end != ':' || !major || major > 0xffff)
		usage("--%s %s: want a handle, as 10:", option, optarg);
	if (end[1])
		minor = strtoul(end + 1, &end, 16);
	else
		end++;
	if (errno || *end || minor > 0xffff)
		usage("--%s %s: want a handle, as 10:", option, optarg);
	return major << 16 | minor;
}

static void get_option(struct opts *o, int id, const char *name)
{
	switch (id) {
	case OPT_DEV:
		o->dev = optarg;
		break;
	case OPT_HANDLE:
		o->handle = get_handle(name);
		break;
	case OPT_PARENT:
		o->parent = get_handle(name);
		break;
	case OPT_TRACE:
		o->trace = true;
		break;
	case OPT_INTERVAL:
		o->interval = (__s64)(get_real(name, optarg, 1e-6, 1e6) * NSEC_PER_SEC);
		break;
	case OPT_DURATION:
		o->duration = (__s64)(get_real(name, optarg, 0.001, 1e6) * NSEC_PER_SEC);
		break;
	case OPT_BUFFER:
		o->buffer_mb = (unsigned int)get_real(name, optarg, 1, 65536);
		break;
	case OPT_OUT:
		o->out = optarg;
		break;
	}
}

int main(int argc, char **argv)
{
	struct opts o = { .interval = NSEC_PER_SEC / 20, .buffer_mb = 64 };
	struct sigaction sa = { .sa_handler = on_signal };
	const char *name;
	int id;

	occupy_standard_fds();
	while ((id = next_option(argc, argv, options, help_text, &name)))
		get_option(&o, id, name);
	if (!o.out)
		usage("--out is missing");
	if (!o.trace == !o.dev)
		usage("want either --dev or --trace");
	if (o.trace && o.parent)
		usage("--parent is not for --trace");
	if (o.handle && o.parent)
		usage("want --handle or --parent");

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	prctl(PR_SET_TIMERSLACK, 1);
	return o.trace ? run_trace(&o) : run_samples(&o);
}
