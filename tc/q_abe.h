/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of the plugin share. */
#ifndef _Q_ABE_H
#define _Q_ABE_H

#include <linux/pkt_sch_abe.h>

#include "tc_abi.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define ABE_TEXT	32	/* longest number as text, and more */

/* What tc looks for, and all that it sees. */
extern struct qdisc_util abe_qdisc_util
	__attribute__((visibility("default")));

/*
 * Words to numbers, q_abe_text.c. All of them refuse what does not begin with
 * a digit or a point: signs, blanks, "nan", "inf".
 */

/* A whole number, hexadecimal after 0x, and where it ends. */
bool abe_get_whole(const char *str, __u64 max, __u64 *value, const char **end);

/* These return what is wrong with the word, or NULL. */
const char *abe_get_quantity(const char *text, __u64 *value, int *unit);
const char *abe_get_rate(const char *text, __u64 *value);
const char *abe_get_fixed(const char *text, unsigned int bits, __u64 *value);
const char *abe_get_dscps(const char *text, __u64 *set);

/* Numbers to words that give the same number again. */
const char *abe_number_text(char *buf, __u64 value);
const char *abe_time_text(char *buf, __u64 us);
const char *abe_size_text(char *buf, __u64 bytes);
const char *abe_rate_text(char *buf, __u64 rate);
const char *abe_fixed_text(char *buf, __u64 value, unsigned int bits);

/* Only as text; as text and as a JSON number that is written out already. */
void abe_print_text(const char *text);
void abe_print_number(const char *key, const char *json, const char *text);

/* Statistics, q_abe_stats.c */
void abe_print_stats(struct rtattr *xstats);

#endif /* _Q_ABE_H */
