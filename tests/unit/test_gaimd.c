// SPDX-License-Identifier: GPL-2.0
/*
 * The window of GAIMD, kernel/gaimd.h: exact sequences, floating point, and Reno's.
 */
#include "gaimd.h"
#include "unit.h"

static u64 seed = 1;

/* Each window acknowledged at once, with the defaults. */
static void test_growth(void)
{
	static const struct {
		u32	cwnd;
		u64	credit;
	} want[] = {
		{ 16, 4960 }, { 16, 9920 }, { 16, 14880 },
		{ 17, 3840 }, { 17, 9110 }, { 17, 14380 },
		{ 18, 2650 }, { 18, 8230 }, { 18, 13810 },
		{ 19, 1390 }, { 19, 7280 }, { 19, 13170 },
	};
	u32 cwnd = 16, bad = 0, i;
	u64 credit = 0;

	for (i = 0; i < ARRAY_SIZE(want); i++) {
		cwnd = gaimd_acked(cwnd, &credit, cwnd, 310);
		bad += cwnd != want[i].cwnd || credit != want[i].credit;
	}
	ok(!bad, "growth from 16: twelve windows and their fractions");
	ok(gaimd_reduce(cwnd, credit, 875) == 17, "then a loss leaves 17");
	ok(gaimd_reduce(8, 7999, 875) == 7 && gaimd_reduce(8, 0, 875) == 7 &&
	   gaimd_reduce(7, 0, 875) == 6 && gaimd_reduce(7, 6993, 875) == 6 &&
	   gaimd_reduce(9, 0, 875) == 7 && gaimd_reduce(9, 1296, 875) == 8,
	   "the fraction counts, and then it is rounded down");
	credit = 35000;
	ok(gaimd_acked(10, &credit, 1, 310) == 11 && credit == 310,
	   "a credit of a window that was larger is good for one packet");
	ok(gaimd_reduce(10, 1000000, 875) == 9,
	   "and worth less than one when the window is reduced");
}

static void test_losses(void)
{
	static const u32 want[] = {
		87, 76, 66, 57, 49, 42, 36, 31, 27, 23, 20, 17, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2, 2,
	};
	static const u32 from[] = { 12, 16, 20, 100 };
	u32 cwnd = 100, bad = 0, i, n;

	for (i = 0; i < ARRAY_SIZE(want); i++) {
		cwnd = gaimd_reduce(cwnd, 0, 875);
		bad += cwnd != want[i];
	}
	ok(!bad, "losses only, from 100: %u steps down to 2", i);
	for (i = 0; i < ARRAY_SIZE(from); i++) {
		for (n = 0, cwnd = from[i]; 2 * cwnd > from[i]; n++)
			cwnd = gaimd_reduce(cwnd, 0, 875);
		ok(n == (from[i] == 100 ? 5 : 4), "from %u: half at the loss number %u",
		   from[i], n);
	}
}

static void test_friendly(void)
{
	u32 beta, bad = 0;

	for (beta = 0; beta <= 1000; beta++) {
		double b = beta / 1000.0;

		bad += fabs(gaimd_friendly(beta) - 4000 * (1 - b * b) / 3) > 0.5 + 1e-9;
	}
	ok(!bad && gaimd_friendly(500) == 1000 && gaimd_friendly(875) == 313,
	   "alpha for each beta: 4 (1 - beta^2)/3");
}

/* Any window, credit, and number of packets. */
static void test_any(void)
{
	u64 i, grown = 0, left = 0, less = 0;

	for (i = 0; i < unit_samples(2000000); i++) {
		u32 cwnd = 1 + unit_log_upto(&seed, 1U << 30);
		u64 credit = unit_upto(&seed, 1000ULL * cwnd - 1), was = credit;
		u32 acked = unit_log_upto(&seed, U32_MAX);
		u32 alpha = unit_upto(&seed, 1000), beta = unit_upto(&seed, 1000);
		long double all = was + (long double)acked * alpha, want;
		u32 got;

		want = (cwnd + was / (1000.0L * cwnd)) * beta / 1000;
		got = gaimd_reduce(cwnd, was, beta);
		/* of the fraction there are thousandths */
		less += got > fmaxl(want, 2) + 1e-9L || got + 1 < want - 1e-3L || got < 2;
		got = gaimd_acked(cwnd, &credit, acked, alpha);
		grown += got != cwnd + (u64)floorl(all / (1000.0L * cwnd));
		left += credit >= 1000ULL * cwnd ||
			fabsl(all - (got - cwnd) * 1000.0L * cwnd - credit) > 0;
	}
	ok(!grown, "growth: the packets that the credit is good for");
	ok(!left, "growth: what is left of it is less than a packet");
	ok(!less, "reduction: beta of window and fraction, rounded down, 2 at least");
}

/* Reno's, as RFC 5681 has it (3.1): a packet more for a window of them, half at a loss. */
static void test_reno(void)
{
	u32 cwnd = 10, reno = 10, count = 0, bad = 0, i;
	u64 credit = 0;

	for (i = 0; i < 1000000; i++) {
		u32 acked = unit_upto(&seed, 3);

		cwnd = gaimd_acked(cwnd, &credit, acked, 1000);
		count += acked;
		if (count >= reno) {
			count -= reno;
			reno++;
		}
		if (!unit_upto(&seed, 1000)) {
			cwnd = gaimd_reduce(cwnd, credit, 500);
			credit = 0;
			reno = reno / 2 > 2 ? reno / 2 : 2;
			count = 0;
		}
		bad += cwnd != reno;
	}
	ok(!bad, "alpha 1 and beta 1/2: Reno's window, acknowledgment by acknowledgment");
}

/* One packet of @every is lost, and costs no time. The mean is that of round trips. */
static void periodic(u32 every, u32 low, u32 high, double mean)
{
	u32 cwnd = 10, least = U32_MAX, most = 0, cycle;
	double packets = 0, rounds = 0;
	u64 credit = 0;

	for (cycle = 0; cycle < 400; cycle++) {
		u32 left = every;

		while (left) {
			u32 n = min(cwnd, left);

			if (cycle > 200) {
				packets += n;
				rounds += (double)n / cwnd;
			}
			left -= n;
			cwnd = gaimd_acked(cwnd, &credit, n, 310);
		}
		if (cycle > 200)
			most = max(most, cwnd);
		cwnd = gaimd_reduce(cwnd, credit, 875);
		credit = 0;
		if (cycle > 200)
			least = min(least, cwnd);
	}
	ok(least == low && most == high && fabs(packets / rounds - mean) < 0.05,
	   "a loss in %u packets: %u to %u, mean %.2f", every, least, most, packets / rounds);
}

/*
 * Each packet is lost with @loss, and there are no time-outs. Losses in the round trip
 * after a reduction belong to it.
 */
static void bernoulli(double loss, u32 alpha, u32 beta, double mean, double least, double most)
{
	double sum = 0, squares = 0, n = 0;
	bool recovers = false;
	u32 cwnd = 10, i;
	u64 credit = 0;

	for (n = 0; n < unit_samples(2000000); n++) {
		bool lost = false;

		sum += cwnd;
		squares += (double)cwnd * cwnd;
		for (i = 0; i < cwnd; i++)
			lost |= unit_unit(&seed) < loss;
		if (lost && !recovers) {
			cwnd = gaimd_reduce(cwnd, credit, beta);
			credit = 0;
			recovers = true;
		} else {
			recovers = false;
			cwnd = gaimd_acked(cwnd, &credit, cwnd, alpha);
		}
	}
	sum /= n;
	squares = sqrt(squares / n - sum * sum) / sum;
	ok(fabs(sum / mean - 1) < 0.02 && squares > least && squares < most,
	   "%.1f %% lost, alpha %.2f, beta %.3f: mean window %.2f, CoV %.3f",
	   100 * loss, alpha / 1e3, beta / 1e3, sum, squares);
}

int main(void)
{
	test_growth();
	test_losses();
	test_friendly();
	test_any();
	test_reno();
	periodic(1000, 42, 48, 44.8);
	periodic(400, 25, 29, 26.7);
	periodic(200, 17, 20, 18.1);
	periodic(100, 11, 13, 11.7);
	periodic(50, 10, 11, 10.2);
	bernoulli(0.005, 310, 875, 20.1, 0.19, 0.21);
	bernoulli(0.01, 310, 875, 13.7, 0.21, 0.23);
	bernoulli(0.02, 310, 875, 9.3, 0.22, 0.24);
	bernoulli(0.05, 310, 875, 5.2, 0.27, 0.29);
	bernoulli(0.005, 1000, 500, 18.3, 0.41, 0.45);
	bernoulli(0.01, 1000, 500, 12.8, 0.41, 0.45);
	bernoulli(0.02, 1000, 500, 9.0, 0.41, 0.45);
	bernoulli(0.05, 1000, 500, 5.6, 0.41, 0.45);
	return unit_end();
}
