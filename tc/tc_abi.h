/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the stock tc binary offers a qdisc plugin, iproute2 6.1 to 7.3.
 *
 * Debian ships no header for it. Only what q_abe.c uses is declared, and only
 * what all these versions export; tests/host/plugin compares the plugin's
 * undefined symbols with those of the tc that is installed.
 */
#ifndef _TC_ABI_H
#define _TC_ABI_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/**
 * struct qdisc_util - a kind of qdisc, found by tc as <kind>_qdisc_util
 * @next: for tc's list
 * @id: the kind
 * @parse_qopt: command line to attributes; not 0 means that an error has been
 *	reported, and nothing is sent
 * @print_qopt: TCA_OPTIONS of a qdisc
 * @print_xstats: TCA_STATS_APP of a qdisc or class
 * @parse_copt: as @parse_qopt, of a class
 * @print_copt: TCA_OPTIONS of a class
 * @has_block: says which filter blocks a qdisc shares; unused here
 *
 * The first argument of the functions became const in 6.9.
 */
struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_qopt)(const struct qdisc_util *qu, FILE *f,
			  struct rtattr *opt);
	int (*print_xstats)(const struct qdisc_util *qu, FILE *f,
			    struct rtattr *xstats);
	int (*parse_copt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_copt)(const struct qdisc_util *qu, FILE *f,
			  struct rtattr *opt);
	int (*has_block)(const struct qdisc_util *qu, struct rtattr *opt,
			 __u32 block_idx, bool *p_has);
};

/* Netlink attributes */
int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data,
	      int alen);
struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);
int parse_rtattr(struct rtattr *tb[], int max, struct rtattr *rta, int len);
int parse_rtattr_flags(struct rtattr *tb[], int max, struct rtattr *rta, int len,
		       unsigned short flags);

/* Words to numbers; 0 is success */
int get_rate64(__u64 *rate, const char *str);		/* bytes/s */
int get_time(unsigned int *time, const char *str);	/* us */
int get_size(unsigned int *size, const char *str);	/* bytes */

/* Output, as text or (tc -j) as JSON */
enum output_type {
	PRINT_FP = 1,		/* only as text */
	PRINT_JSON = 2,		/* only as JSON */
	PRINT_ANY = 4,
};

enum color_attr {
	COLOR_NONE = 6,
};

struct json_writer;

bool is_json_context(void);
struct json_writer *get_json_writer(void);
void jsonw_name(struct json_writer *self, const char *name);
void jsonw_printf(struct json_writer *self, const char *fmt, ...);
void open_json_object(const char *key);
void close_json_object(void);
void open_json_array(enum output_type type, const char *key);
void close_json_array(enum output_type type, const char *end);
int print_color_bool(enum output_type type, enum color_attr color,
		     const char *key, const char *fmt, bool value);
int print_color_string(enum output_type type, enum color_attr color,
		       const char *key, const char *fmt, const char *value);
int print_color_u64(enum output_type type, enum color_attr color,
		    const char *key, const char *fmt, uint64_t value);
void print_nl(void);

#endif /* _TC_ABI_H */
