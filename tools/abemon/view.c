// SPDX-License-Identifier: GPL-2.0
/*
 * abemon: the view. Lines are made as text first; on a terminal those that have changed
 * are drawn anew, four times a second at most, elsewhere all are printed.
 */
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <linux/pkt_sched.h>
#include "../lib/cli.h"
#include "../lib/clock.h"
#include "history.h"
#include "rules.h"
#include "view.h"

#define MAX_ROWS	500
#define MAX_COLUMNS	500
/* A column may be a character of three bytes. */
#define LINE		(3 * MAX_COLUMNS + 32)
#define REDRAW		(NSEC_PER_SEC / 4)
#define SPAN		(10 * NSEC_PER_SEC)	/* that rules and times queued look at */
#define SOJOURN_US	64	/* TCA_ABE_COLOUR_SOJOURN's first step */

/* What is written: a line after the other, no longer than the window is wide. */
struct page {
	unsigned int	rows, columns;
	unsigned int	lines;
	char		(*line)[LINE];
};

static struct {
	bool		live;		/* on a terminal */
	int		signals;	/* that say to draw it anew */
	__s64		slot;
	__s64		drawn;		/* when */
	struct history	*all;
	struct page	page, shown;
	struct termios	before;
	const char	*const *bars;
	unsigned int	nbars;
	const char	*notice;	/* above everything else; NULL: none */
} view = { .signals = -1 };

static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
static const char *const ascii[] = { " ", ".", ":", "-", "=", "+", "*", "#" };

/* Add to a line. Bytes of a character beyond the first take no column. */
__printf(2, 3) static void put(struct page *page, const char *fmt, ...)
{
	char text[LINE], *line, *c;
	unsigned int columns = 0;
	va_list ap;

	if (page->lines >= page->rows)
		return;
	line = page->line[page->lines];
	for (c = line; *c; c++)
		columns += (*c & 0xc0) != 0x80;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (const char *from = text; *from; from++) {
		bool first = (*from & 0xc0) != 0x80;

		if (columns + first > page->columns)
			break;
		columns += first;
		*c++ = *from;
	}
	*c = '\0';
}

static void end_line(struct page *page)
{
	if (page->lines < page->rows && ++page->lines < page->rows)
		*page->line[page->lines] = '\0';
}

/* A number with three digits and what it is of; "-": unknown. */
static const char *scaled(char buf[32], double value, const char *unit)
{
	static const char *const prefix[] = { "", "k", "M", "G", "T" };
	unsigned int i = 0;

	if (isnan(value))
		return strcpy(buf, "-");
	for (; value >= 999.5 && i + 1 < ARRAY_SIZE(prefix); i++)
		value /= 1000;
	snprintf(buf, 32, "%.3g %s%s", value, prefix[i], unit);
	if (!*prefix[i] && !*unit)
		buf[strlen(buf) - 1] = '\0';
	return buf;
}

static const char *ms(char buf[32], double us)
{
	if (isnan(us))
		return strcpy(buf, "-");
	snprintf(buf, 32, "%.3g", us / 1e3);
	return buf;
}

static double number(const struct numbers *numbers, unsigned int attr, enum form form)
{
	__u64 value;

	return get_number(numbers, attr, &value) ? real_of(form, value) : NAN;
}

/* A device's name may have escape sequences in it, and what is no character at all. */
static const char *harmless(char buf[IF_NAMESIZE], const char *name)
{
	char *to = buf;

	while (*name) {
		unsigned int n = utf8_length(name);
		unsigned char c = *name, next = n > 1 ? name[1] : 0;

		if (!n || c < ' ' || c == 127 || (c == 0xc2 && next < 0xa0) ||
		    (n > 1 && view.bars != blocks)) {
			*to++ = '?';
			name += n ? n : 1;
		} else {
			while (n--)
				*to++ = *name++;
		}
	}
	*to = '\0';
	return buf;
}

static void put_head(struct page *page, const struct history *h)
{
	const struct sample *s = h->now;
	char clock[16], id[16] = "root", dev[IF_NAMESIZE];
	time_t seconds = h->shown / NSEC_PER_SEC;
	struct tm tm;

	if (s->parent != TC_H_ROOT)
		snprintf(id, sizeof(id), "at %x:%x", TC_H_MAJ(s->parent) >> 16,
			 TC_H_MIN(s->parent));
	localtime_r(&seconds, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	put(page, "%s %x: %s", harmless(dev, s->dev), TC_H_MAJ(s->handle) >> 16, id);
	put(page, "%*s", (int)(60 - strlen(dev) - strlen(id)), "");
	put(page, "%s", clock);
	end_line(page);
}

static void put_state(struct page *page, const struct history *h)
{
	const struct sample *s = h->now;
	__u64 unit = TCA_ABE_UNIT_TIME;
	char a[32], b[32], c[32];
	const char *of;

	get_number(&s->stat, TCA_ABE_STATS_UNIT, &unit);
	of = unit == TCA_ABE_UNIT_PACKETS ? "p" : "B";
	put(page, "queue %sp %s", scaled(a, number(&s->basic, BASIC_QLEN, FORM_COUNT), ""),
	    scaled(b, number(&s->basic, BASIC_BACKLOG, FORM_BYTES), "B"));
	put(page, ", average %s", scaled(a, number(&s->stat, TCA_ABE_STATS_AVERAGE, FORM_Q32), of));
	put(page, ", probability %s",
	    scaled(a, 100 * number(&s->stat, TCA_ABE_STATS_PROBABILITY, FORM_Q31), "%"));
	put(page, ", drain rate %s",
	    scaled(c, 8 * number(&s->stat, TCA_ABE_STATS_DRAIN_RATE, FORM_RATE), "bit/s"));
	end_line(page);
	put(page, "alpha %s, target %s",
	    scaled(a, number(&s->stat, TCA_ABE_STATS_ALPHA, FORM_Q16), ""),
	    scaled(b, number(&s->stat, TCA_ABE_STATS_ALPHA_TARGET, FORM_Q16), ""));
	put(page, ", D %s ms of %s", ms(a, number(&s->stat, TCA_ABE_STATS_OFFSET, FORM_US)),
	    ms(b, offset_limit(s)));
	put(page, ", memory %s of %s",
	    scaled(a, number(&s->stat, TCA_ABE_STATS_MEMORY_USED, FORM_BYTES), "B"),
	    scaled(b, number(&s->stat, TCA_ABE_STATS_MEMORY_LIMIT, FORM_BYTES), "B"));
	end_line(page);
}

/* Rates of the last second or interval; before there is one, what has been counted in all. */
static void put_colour(struct page *page, const struct history *h, enum colour which,
		       const struct span *span)
{
	static const unsigned int losses[] = {
		TCA_ABE_COLOUR_EARLY_DROPS, TCA_ABE_COLOUR_LATE_DROPS, TCA_ABE_COLOUR_LIMIT_DROPS,
		TCA_ABE_COLOUR_MARKS, TCA_ABE_COLOUR_EXCUSED,
	};
	double seconds = span->seconds, sent = growth(span, which, TCA_ABE_COLOUR_SENT);
	char a[32], b[32];

	put(page, "%-6s", colour_names[which]);
	put(page, " %9s %9s", scaled(a, growth(span, which, TCA_ABE_COLOUR_ARRIVED) / seconds, ""),
	    scaled(b, 8 * growth(span, which, TCA_ABE_COLOUR_BYTES) / seconds, ""));
	put(page, " %7s", ms(a, growth(span, which, TCA_ABE_COLOUR_DELAY_SUM) / sent));
	put(page, " %7s", ms(a, number(&h->now->colour[which], TCA_ABE_COLOUR_DELAY_MAX, FORM_US)));
	for (unsigned int i = 0; i < ARRAY_SIZE(losses); i++)
		put(page, i == 4 ? " %7s" : " %6s",
		    scaled(a, growth(span, which, losses[i]) / seconds, ""));
	end_line(page);
}

/* Up to which time so many of the packets were queued, us; NAN: longer than all steps. */
static double quantile(const __u64 *n, unsigned int steps, double part)
{
	double all = 0, below = 0;

	for (unsigned int i = 0; i < steps; i++)
		all += n[i];
	for (unsigned int i = 0; i + 1 < steps; i++) {
		below += n[i];
		if (below >= part * all)
			return SOJOURN_US * (1ULL << i);
	}
	return NAN;
}

/* How long packets were queued: a bar for each step of the kernel's. */
static void put_times(struct page *page, enum colour colour, const struct span *span)
{
	unsigned int steps = span->to->sojourns[colour];
	char half[32], most[32];
	__u64 n[SOJOURNS], max = 0;

	put(page, "%-6s ", colour_names[colour]);
	if (!steps) {
		put(page, "this module does not count times queued: there is their mean");
		end_line(page);
		return;
	}
	for (unsigned int i = 0; i < steps; i++) {
		n[i] = span->to->sojourn[colour][i];
		/* Before there is an earlier reading, all. */
		if (i < span->from->sojourns[colour])
			n[i] -= span->from->sojourn[colour][i];
		max = n[i] > max ? n[i] : max;
	}
	for (unsigned int i = 0; i < steps; i++)
		put(page, "%s", view.bars[max ? (n[i] * (view.nbars - 1) + max - 1) / max : 0]);
	if (max)
		put(page, " half below %s ms, 99 %% below %s", ms(half, quantile(n, steps, 0.5)),
		    ms(most, quantile(n, steps, 0.99)));
	end_line(page);
}

static const char *const curve_names[CURVES] = {
	[CURVE_DELAY_GREEN] = "green", [CURVE_DELAY_BLUE] = "blue", [CURVE_QUEUE] = "queue",
	[CURVE_DROPS] = "losses", [CURVE_ALPHA] = "alpha",
};

static void put_curve(struct page *page, const struct history *h, enum curve curve)
{
	unsigned int n = h->points < SLOTS ? h->points : SLOTS;
	double max = NAN;
	char buf[32];

	for (unsigned int i = 0; i < n; i++)
		max = fmax(max, h->point[i][curve]); /* NAN only if all are */
	put(page, "%-7s", curve_names[curve]);
	for (unsigned int i = h->points - n; i < h->points; i++) {
		double value = h->point[i % SLOTS][curve];

		if (isnan(value) || !(max > 0))
			put(page, " ");
		else
			put(page, "%s", view.bars[lround(value / max * (view.nbars - 1))]);
	}
	put(page, "%*s", (int)(SLOTS - n), "");
	if (curve == CURVE_QUEUE)
		scaled(buf, max, "B");
	else if (curve == CURVE_DELAY_GREEN || curve == CURVE_DELAY_BLUE)
		scaled(buf, max / 1e3, "ms");
	else
		scaled(buf, max, "");
	put(page, " max %s", buf);
	end_line(page);
}

static void put_qdisc(struct page *page, const struct history *h)
{
	static const struct sample zero = {
		.colour = { { .known = ~0ULL }, { .known = ~0ULL } }
	};
	struct span span = { &zero, h->now, 1 };
	char words[WORDS];
	bool rates = get_span(h, NSEC_PER_SEC, &span);

	if (!rates)
		span = (struct span){ &zero, h->now, 1 };
	put_head(page, h);
	put_state(page, h);
	put(page, "       %9s %9s %7s %7s %6s %6s %6s %6s %7s", rates ? "packets/s" : "packets",
	    rates ? "bit/s" : "bits", "mean ms", "max ms", "early", "late", "full", "marks",
	    "excused");
	end_line(page);
	for (unsigned int colour = 0; colour < COLOURS; colour++)
		put_colour(page, h, colour, &span);
	if (!get_span(h, SPAN, &span))
		span = (struct span){ &zero, h->now, 1 };
	put(page, "times queued, 64 us, 128 us, ... 1 s");
	end_line(page);
	for (unsigned int colour = 0; colour < COLOURS; colour++)
		put_times(page, colour, &span);
	for (unsigned int curve = 0; view.live && curve < CURVES; curve++)
		put_curve(page, h, curve);
	if (get_span(h, SPAN, &span))
		for (const struct rule *rule = rules; rule->name; rule++)
			if (rule->applies(&span, words)) {
				put(page, "! %s", words);
				end_line(page);
			}
	end_line(page);
}

static void set_size(struct page *page, unsigned int rows, unsigned int columns)
{
	page->rows = rows < 1 ? 24 : rows > MAX_ROWS ? MAX_ROWS : rows;
	page->columns = columns < 1 ? 80 : columns > MAX_COLUMNS ? MAX_COLUMNS : columns;
	free(page->line);
	page->line = calloc(page->rows, LINE);
	if (!page->line)
		die("no memory for a view of %u rows", page->rows);
	page->lines = 0;
}

/* The window has another size, or is to be drawn for the first time. */
static void resize(void)
{
	struct winsize size = { 0 };

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	set_size(&view.page, size.ws_row, size.ws_col);
	set_size(&view.shown, size.ws_row, size.ws_col);
	fputs("\033[2J", stdout);
}

static void clear(struct page *page)
{
	page->lines = 0;
	*page->line[0] = '\0';
}

static void make_page(struct page *page)
{
	clear(page);
	if (view.notice) {
		put(page, "%s", view.notice);
		end_line(page);
	}
	for (const struct history *h = view.all; h && page->lines < page->rows; h = h->next)
		put_qdisc(page, h);
	if (!view.all) {
		put(page, "no abe here any more: waiting for it to come back");
		end_line(page);
	}
}

static void draw(void)
{
	struct page *page = &view.page, *shown = &view.shown;

	make_page(page);
	for (unsigned int i = 0; i < page->rows; i++) {
		const char *line = i < page->lines ? page->line[i] : "";

		/* Erased first: behind the last column it would take that one, too. */
		if (strcmp(line, shown->line[i])) {
			printf("\033[%u;1H\033[K%s", i + 1, line);
			strcpy(shown->line[i], line);
		}
	}
	if (fflush(stdout) || ferror(stdout))
		die_errno("standard output");
	view.drawn = now(CLOCK_MONOTONIC);
}

static void set_raw(void)
{
	struct termios raw = view.before;

	raw.c_iflag &= ~IXON;
	raw.c_lflag &= ~(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	/* Who is stopped leaves the terminal as it is. */
	raw.c_cc[VSUSP] = _POSIX_VDISABLE;
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

/* Leave the terminal as it was; also when a signal comes. */
static void leave(void)
{
	static const char cursor_and_text[] = "\033[?25h\033[?1049l";
	int flags = fcntl(STDOUT_FILENO, F_GETFL);
	ssize_t n;

	if (!view.live)
		return;
	view.live = false;
	tcsetattr(STDIN_FILENO, TCSANOW, &view.before);
	/* Nobody may be reading: then it would wait for ever. */
	fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
	n = write(STDOUT_FILENO, cursor_and_text, sizeof(cursor_and_text) - 1);
	(void)n;
	fcntl(STDOUT_FILENO, F_SETFL, flags);
}

/* What ends other programs ends this one, with the same status. */
static void on_end(int signum)
{
	leave();
	raise(signum);
}

static void catch_signals(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action = { .sa_handler = on_end, .sa_flags = SA_RESETHAND };
	sigset_t set;

	for (unsigned int i = 0; i < ARRAY_SIZE(ends); i++)
		sigaction(ends[i], &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGCONT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	view.signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (view.signals < 0)
		die_errno("signalfd");
}

/**
 * view_start - make ready to show readings
 * @live:	there will be more than one
 * @interval:	ns, between them
 *
 * Without a terminal, or for one reading, lines are printed.
 */
void view_start(bool live, __s64 interval)
{
	view.slot = interval > NSEC_PER_SEC ? interval : NSEC_PER_SEC;
	view.bars = ascii;
	view.nbars = ARRAY_SIZE(ascii);
	if (!strcmp(nl_langinfo(CODESET), "UTF-8")) {
		view.bars = blocks;
		view.nbars = ARRAY_SIZE(blocks);
	}
	if (!live || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
	    tcgetattr(STDIN_FILENO, &view.before)) {
		set_size(&view.page, MAX_ROWS, MAX_COLUMNS);
		return;
	}
	catch_signals();
	view.live = true;
	before_complaint = leave;
	atexit(view_end);
	set_raw();
	fputs("\033[?1049h\033[?25l", stdout);
	resize();
}

/* What poll() has to look at, for reading; -1: nothing. */
int view_input(void)
{
	return view.live ? STDIN_FILENO : -1;
}

int view_signals(void)
{
	return view.signals;
}

void view_add(struct reading *reading)
{
	struct page *page = &view.page;

	history_add(&view.all, reading, view.slot);
	if (view.live) {
		if (now(CLOCK_MONOTONIC) - view.drawn >= REDRAW - REDRAW / 20)
			draw();
		return;
	}
	for (const struct history *h = view.all; h; h = h->next) {
		/* What it said last has been printed. */
		if (h->missed)
			continue;
		clear(page);
		put_qdisc(page, h);
		for (unsigned int i = 0; i < page->lines; i++)
			puts(page->line[i]);
	}
}

/**
 * view_ended - take what has come by view_input() and view_signals()
 * @events:	of poll(), for view_input()
 *
 * Return: it ends the view: q, or the terminal has gone.
 */
bool view_ended(short events)
{
	struct signalfd_siginfo info;
	char keys[16];
	ssize_t n;

	if (!view.live)
		return false;
	if (read(view.signals, &info, sizeof(info)) == sizeof(info)) {
		set_raw();
		resize();
		draw();
	}
	if (events & (POLLHUP | POLLERR | POLLNVAL))
		return true;
	if (!(events & POLLIN))
		return false;
	n = read(STDIN_FILENO, keys, sizeof(keys));
	return n > 0 && (memchr(keys, 'q', n) || memchr(keys, 'Q', n));
}

/* Say something above everything else. */
void view_notice(const char *words)
{
	view.notice = words;
	draw();
}

/* Leave the terminal as it was, and forget everything. */
void view_end(void)
{
	fflush(stdout);
	leave();
	history_free(&view.all);
	free(view.page.line);
	free(view.shown.line);
	view.page.line = NULL;
	view.shown.line = NULL;
}
