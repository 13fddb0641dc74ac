// SPDX-License-Identifier: GPL-2.0
/*
 * voipcall's reports, as text and as JSON.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../lib/cli.h"
#include "../lib/clock.h"
#include "report.h"

static const char model[] = "E-model (ITU-T G.107): an estimate, nobody has listened";

/**
 * struct metric_name - where a metric is in the JSON
 * @group:	object that it is in, NULL: the direction's own
 * @name:	key
 */
struct metric_name {
	const char	*group;
	const char	*name;
};

static const struct metric_name names[METRICS] = {
	[M_PACKETS] = { "received", "packets" },
	[M_BYTES] = { "received", "bytes" },
	[M_LOST] = { "received", "lost" },
	[M_DUPLICATES] = { "received", "duplicates" },
	[M_REORDERED] = { "received", "reordered" },
	[M_LATE] = { "received", "late" },
	[M_NOT_SENT] = { "received", "not_sent" },
	[M_CE] = { "received", "ce" },
	[M_LOSS] = { NULL, "loss" },
	[M_EFFECTIVE_LOSS] = { NULL, "effective_loss" },
	[M_BURST_RATIO] = { NULL, "burst_ratio" },
	[M_DELAY_MIN] = { "delay_ms", "min" },
	[M_DELAY_MEDIAN] = { "delay_ms", "median" },
	[M_DELAY_P99] = { "delay_ms", "p99" },
	[M_DELAY_MAX] = { "delay_ms", "max" },
	[M_DELAY_MEAN] = { "delay_ms", "mean" },
	[M_VARIATION_MEDIAN] = { "variation_ms", "median" },
	[M_VARIATION_P99] = { "variation_ms", "p99" },
	[M_VARIATION_MAX] = { "variation_ms", "max" },
	[M_JITTER] = { NULL, "jitter_ms" },
	[M_JITTER_MAX] = { NULL, "jitter_max_ms" },
	[M_ROUND_TRIP] = { NULL, "round_trip_ms" },
	[M_BUFFER] = { NULL, "buffer_ms" },
	[M_MOUTH_TO_EAR] = { NULL, "mouth_to_ear_ms" },
	[M_RATED] = { NULL, "rated" },
	[M_IE] = { NULL, "ie" },
	[M_BPL] = { NULL, "bpl" },
	[M_R] = { NULL, "r" },
	[M_MOS] = { NULL, "mos" },
};

static void json_number(double value, int digits)
{
	/* counts to the last digit; what came over the wire has no more than seven */
	if (isfinite(value))
		printf("%.*g", value == trunc(value) ? 10 : digits, value);
	else
		fputs("null", stdout);
}

static void json_metrics(const double *m, int digits)
{
	const char *group = NULL, *sep = "";

	for (int i = 0; i < METRICS; i++) {
		if (group && group != names[i].group)
			putchar('}');
		if (names[i].group && names[i].group != group) {
			printf("%s\"%s\": {", i ? ", " : "", names[i].group);
			sep = "";
		}
		group = names[i].group;
		printf("%s\"%s\": ", sep, names[i].name);
		json_number(m[i], digits);
		sep = ", ";
	}
	if (group)
		putchar('}');
}

/* Why there is no R, or NULL. */
static const char *why_unrated(const double *m)
{
	if (isfinite(m[M_R]))
		return NULL;
	if (!m[M_PACKETS])
		return "nothing was received";
	if (isnan(m[M_MOUTH_TO_EAR]))
		return "the delay is not known";
	if (!(m[M_RATED] >= RATED_MIN))
		return "the codec changed its mode too often";
	return "there are no published Ie and Bpl for this mode of the codec";
}

static void json_rate(const struct sender *tx)
{
	if (!tx->readings) {
		fputs("null", stdout);
		return;
	}
	printf("{\"allowed\": %llu, \"mean\": %.0f, \"rtt_ms\": %.3f, \"p\": %.6f}",
	       tx->rate.allowed, tx->allowed_sum / (double)tx->readings, tx->rate.rtt_ms,
	       tx->rate.p);
}

static void json_sent(const struct call *c)
{
	const struct sender *tx = &c->tx;
	const char *sep = "";

	printf("\"sent\": {\"packets\": %llu, \"bytes\": %llu, \"not_sent\": %u, \"modes\": {",
	       tx->packets, tx->octets + tx->packets * RTP_HEADER, tx->not_sent);
	for (unsigned int i = 0; c->offer.codec && i < c->offer.codec->modes; i++) {
		if (!tx->mode[i])
			continue;
		printf("%s\"%s\": %llu", sep, c->offer.codec->mode[i].name, tx->mode[i]);
		sep = ", ";
	}
	printf("}, \"switches\": %u}, \"rate\": ", tx->adapt.switches);
	json_rate(tx);
}

static const char *json_bool(bool value)
{
	return value ? "true" : "false";
}

/* NULL is null; there is nothing to escape in what this program says. */
static void json_text(const char *key, const char *value)
{
	printf(value ? "\"%s\": \"%s\", " : "\"%s\": null, ", key, value);
}

static void json_ccid(const char *key, int ccid)
{
	if (ccid < 0)
		printf("\"%s\": null, ", key);
	else
		printf("\"%s\": %d, ", key, ccid);
}

static void report_json(const struct call *c, const double *m)
{
	printf("{\"role\": \"%s\", \"transport\": \"%s\", ", c->caller ? "call" : "listen",
	       c->opt->udp ? "udp" : "dccp");
	json_ccid("ccid", c->ccid_tx);
	json_ccid("ccid_rx", c->ccid_rx);
	json_text("local", c->local);
	json_text("remote", c->remote);
	json_text("codec", c->rx.codec ? c->rx.codec->name : NULL);
	printf("\"ptime_ms\": %u, \"dscp\": %u, \"ecn\": %s, \"silence\": %s, \"one_way\": %s, ",
	       c->rx.ptime, c->offer.dscp, json_bool(c->offer.ecn), json_bool(c->offer.silence),
	       json_bool(c->offer.one_way));
	printf("\"duration\": %.3f, ", (double)(c->stop - c->start) / NSEC_PER_SEC);
	printf("\"clock_step_ms\": %.3f, ", (double)call_clock_step(c) / NSEC_PER_MSEC);
	json_text("failure", c->failure[0] ? c->failure : NULL);
	json_sent(c);
	fputs(", ", stdout);
	json_metrics(m, 10);
	fputs(", ", stdout);
	json_text("model", model);
	json_text("unrated", why_unrated(m));
	fputs("\"far_end\": ", stdout);
	if (c->has_far) {
		fputs("{", stdout);
		json_metrics(c->far, 7);
		fputs("}", stdout);
	} else {
		fputs("null", stdout);
	}
	puts("}");
}

static void text_delay(const double *m)
{
	if (isnan(m[M_DELAY_MIN])) {
		puts("  delay      not known: the two clocks do not agree");
	} else {
		printf("  delay      %.1f min, %.1f median, %.1f 99 %%, %.1f max ms",
		       m[M_DELAY_MIN], m[M_DELAY_MEDIAN], m[M_DELAY_P99], m[M_DELAY_MAX]);
		puts(" one way, if the clocks agree");
	}
	printf("  variation  %.1f median, %.1f 99 %%, %.1f max ms above the smallest\n",
	       m[M_VARIATION_MEDIAN], m[M_VARIATION_P99], m[M_VARIATION_MAX]);
	printf("  jitter     %.2f ms, at most %.2f ms\n", m[M_JITTER], m[M_JITTER_MAX]);
	if (isfinite(m[M_ROUND_TRIP]))
		printf("  round trip %.1f ms\n", m[M_ROUND_TRIP]);
}

static void text_metrics(const double *m)
{
	const char *why = why_unrated(m);

	printf("  packets    %.0f received, %.0f lost (%.2f %%), %.0f late, %.0f not sent",
	       m[M_PACKETS], m[M_LOST], isnan(m[M_LOSS]) ? 0 : 100 * m[M_LOSS], m[M_LATE],
	       m[M_NOT_SENT]);
	printf(", %.0f duplicates, %.0f reordered", m[M_DUPLICATES], m[M_REORDERED]);
	if (m[M_CE])
		printf(", %.0f marked CE", m[M_CE]);
	putchar('\n');
	if (!m[M_PACKETS])
		return;
	text_delay(m);
	if (why) {
		printf("  quality    no estimate: %s\n", why);
		return;
	}
	printf("  quality    R %.1f, MOS %.2f (E-model, not by ear), with %.0f ms mouth to ear\n",
	       m[M_R], m[M_MOS], m[M_MOUTH_TO_EAR]);
	printf("             and %.2f %% lost, late or not sent\n", 100 * m[M_EFFECTIVE_LOSS]);
}

static void text_sent(const struct call *c)
{
	const struct sender *tx = &c->tx;
	const char *sep = "  kbit/s     ";

	printf("  sent       %llu packets, %u not sent", tx->packets, tx->not_sent);
	if (tx->not_sent)
		fputs(c->opt->udp ? " (no room in the device, or no way to the peer)" :
		      " (held back by the congestion control)", stdout);
	putchar('\n');
	for (unsigned int i = 0; c->offer.codec->modes > 1 && i < c->offer.codec->modes; i++) {
		if (!tx->mode[i])
			continue;
		printf("%s%llu at %s", sep, tx->mode[i], c->offer.codec->mode[i].name);
		sep = ", ";
	}
	if (*sep == ',')
		putchar('\n');
	if (!tx->readings)
		return;
	printf("  rate       %.1f kB/s allowed on average, %.1f at the end;",
	       tx->allowed_sum / (double)tx->readings / 1e3, (double)tx->rate.allowed / 1e3);
	printf(" round trip %.1f ms, loss event rate %.4f\n", tx->rate.rtt_ms, tx->rate.p);
}

static void report_text(const struct call *c, const double *m)
{
	printf("call %s %s, %s", c->caller ? "to" : "from", c->remote,
	       c->opt->udp ? "UDP" : "DCCP");
	if (c->ccid_tx >= 0)
		printf(" CCID %d", c->ccid_tx);
	if (c->ccid_rx >= 0 && c->ccid_rx != c->ccid_tx)
		printf(" (CCID %d back)", c->ccid_rx);
	printf(", %s, %.1f s\n", c->rx.codec ? c->rx.codec->name : "codec unknown",
	       (double)(c->stop - c->start) / NSEC_PER_SEC);
	if (call_clock_step(c))
		printf("  clock      set by %+.3f s meanwhile; delays are by the clock before\n",
		       (double)call_clock_step(c) / NSEC_PER_SEC);
	if (c->talks) {
		printf("to %s\n", c->remote);
		if (c->has_far)
			text_metrics(c->far);
		text_sent(c);
	}
	if (!(c->caller && c->offer.one_way)) {
		printf("from %s\n", c->remote);
		text_metrics(m);
	}
}

/* A call is over. */
void report(const struct call *c)
{
	double m[METRICS];

	if (c->failure[0])
		complain("%s: %s", c->remote, c->failure);
	/* a call that never was has nothing to report */
	if (c->state == CALL_DONE && c->failure[0] && !c->tx.packets && !c->rx.packets)
		return;
	receiver_metrics(&c->rx, m);
	if (c->opt->json)
		report_json(c, m);
	else
		report_text(c, m);
	fflush(stdout);
	if (ferror(stdout))
		die("cannot write to standard output");
}

/* What came since the last line: the mean and the greatest of its delays. */
static void progress_delay(struct call *c, FILE *out)
{
	struct delays *d = &c->rx.delays;
	double mean = (d->sum - d->shown_sum) / (double)(d->n - d->shown);

	fprintf(out, ", delay %.1f ms, at most %.1f", mean / 1e6, (double)d->peak / 1e6);
	d->peak = INT64_MIN;
	d->shown = d->n;
	d->shown_sum = d->sum;
}

/* A line in the course of a call; beside JSON it goes where it does no harm. */
void report_progress(struct call *c, __s64 now)
{
	FILE *out = c->opt->json ? stderr : stdout;
	const struct receiver *r = &c->rx;

	fprintf(out, "%6.1f s", (double)(now - c->start) / NSEC_PER_SEC);
	if (c->talks) {
		fprintf(out, "  sent %llu, not sent %u", c->tx.packets, c->tx.not_sent);
		if (c->offer.codec->modes > 1)
			fprintf(out, ", %s kbit/s", c->offer.codec->mode[c->tx.adapt.mode].name);
		if (c->tx.rate.known)
			fprintf(out, " of %.1f kB/s", (double)c->tx.rate.allowed / 1e3);
	}
	if (r->packets) {
		__u64 expected = r->seq.max - r->seq.base + 1;

		fprintf(out, "  received %llu, lost %llu", r->packets,
			expected > r->packets ? expected - r->packets : 0);
		if (r->delays.n > r->delays.shown)
			progress_delay(c, out);
	}
	fputc('\n', out);
	fflush(out);
}
