// SPDX-License-Identifier: GPL-2.0
/*
 * Alternative Best-Effort: plugin for the stock tc of iproute2.
 *
 * One table, abe_opts, holds every option in the order of the grammar. The
 * command line is first read completely, then checked, then encoded, so an
 * error sends nothing. What is printed as text is a command line again.
 *
 * Ranges are the kernel's business, which names them in its answer. Refused
 * here is only what the attribute cannot hold.
 */
#include <string.h>

#include "q_abe.h"

/* Room for the request; tc's own buffer is far larger in all versions. */
#define ABE_MSG_MAX	4096

/**
 * struct abe_arg - what the command line said of one option
 * @text: the argument's word; NULL if the option was not named
 * @value: as the attribute takes it
 * @mask: of green_mark
 * @unit: what the suffix of a threshold says it counts, -1 without suffix
 */
struct abe_arg {
	const char *text;
	__u64 value;
	__u32 mask;
	int unit;
};

struct abe_opt;

/**
 * struct abe_type - a kind of option
 * @parse: read @arg->text; returns what is wrong with it, or NULL. Not there
 *	for an option that is named by words of its own
 * @print: print the attribute
 * @text: write the value out, if @print is print_value()
 * @size: bytes of the attribute
 */
struct abe_type {
	const char *(*parse)(const struct abe_opt *opt, struct abe_arg *arg);
	void (*print)(const struct abe_opt *opt, struct rtattr *tb[]);
	const char *(*text)(char *buf, __u64 value);
	size_t size;
};

/**
 * struct abe_opt - an option
 * @name: on the command line and in JSON
 * @type: how it is read and printed
 * @words: the names of the values of an enum, or of the zero of a number
 * @attr: TCA_ABE_*
 * @bits: the flag, or the fraction bits of a fixed-point number
 */
struct abe_opt {
	const char *name;
	const struct abe_type *type;
	const char *const *words;
	unsigned short attr;
	unsigned int bits;
};

static const char *const abe_units[] = {
	[TCA_ABE_UNIT_TIME] = "time",
	[TCA_ABE_UNIT_BYTES] = "bytes",
	[TCA_ABE_UNIT_PACKETS] = "packets",
	NULL
};

static const char *const abe_spacings[] = {
	[TCA_ABE_SPACING_UNIFORM] = "uniform",
	[TCA_ABE_SPACING_GEOMETRIC] = "geometric",
	[TCA_ABE_SPACING_DELAYED_UNIFORM] = "delayed_uniform",
	[TCA_ABE_SPACING_DELAYED_GEOMETRIC] = "delayed_geometric",
	[TCA_ABE_SPACING_DETERMINISTIC] = "deterministic",
	NULL
};

static const char *const abe_loops[] = {
	[TCA_ABE_LOOP_PAPER] = "paper",
	[TCA_ABE_LOOP_LOAD] = "load",
	NULL
};

static const char *const abe_auto[] = { "auto", NULL };
static const char *const abe_off[] = { "off", NULL };

static void explain(void)
{
	fprintf(stderr,
		"Usage: ... abe [ time | bytes | packets ] [ rate RATE ]\n"
		"               [ limit N ] [ green_limit N ] [ min N ] [ max N ]\n"
		"               [ probability P ] [ weight W|auto ] [ avpkt BYTES ]\n"
		"               [ [no]gentle ] [ [no]adaptive ] [ [no]bytemode ]\n"
		"               [ [no]ecn ] [ [no]harddrop ]\n"
		"               [ spacing uniform|geometric|delayed_uniform|\n"
		"                         delayed_geometric|deterministic ]\n"
		"               [ loop paper|load ] [ rtt TIME ] [ interval TIME ]\n"
		"               [ k1 X ] [ k2 TIME ] [ k3 TIME ] [ k4 TIME ]\n"
		"               [ gamma1 X ] [ gamma2 X ] [ gamma3 X ] [ lambda X ]\n"
		"               [ offset TIME ] [ offset_max TIME ] [ alpha_max X ]\n"
		"               [ green_dscp LIST|none ] [ green_mark V[/MASK]|none ]\n"
		"               [ [no]flat ] [ [no]split_gso ] [ seed N ]\n"
		"               [ memory_limit BYTES ] [ protect X|off ]\n"
		"N is a duration (200ms), a size (60kb) or a count of packets (60p). Without\n"
		"a suffix it counts us, bytes or packets, as the unit says, which must be\n"
		"named then. LIST is of DSCPs: 45,46 or NQB,EF or 40-47.\n");
}

/*
 * Reading an argument
 */

static const char *parse_threshold(const struct abe_opt *opt,
				   struct abe_arg *arg)
{
	(void)opt;
	return abe_get_quantity(arg->text, &arg->value, &arg->unit);
}

static const char *parse_time(const struct abe_opt *opt, struct abe_arg *arg)
{
	const char *why = parse_threshold(opt, arg);

	if (!why && arg->unit >= 0 && arg->unit != TCA_ABE_UNIT_TIME)
		why = "is not a duration";
	return why;
}

static const char *parse_size(const struct abe_opt *opt, struct abe_arg *arg)
{
	const char *why = parse_threshold(opt, arg);

	if (!why && arg->unit >= 0 && arg->unit != TCA_ABE_UNIT_BYTES)
		why = "is not a size";
	return why;
}

static const char *parse_rate(const struct abe_opt *opt, struct abe_arg *arg)
{
	(void)opt;
	return abe_get_rate(arg->text, &arg->value);
}

static const char *parse_fixed(const struct abe_opt *opt, struct abe_arg *arg)
{
	return abe_get_fixed(arg->text, opt->bits, &arg->value);
}

static const char *parse_enum(const struct abe_opt *opt, struct abe_arg *arg)
{
	for (arg->value = 0; opt->words[arg->value]; arg->value++)
		if (!strcmp(arg->text, opt->words[arg->value]))
			return NULL;
	return "is not known";
}

static const char *parse_protect(const struct abe_opt *opt, struct abe_arg *arg)
{
	if (!parse_enum(opt, arg))
		return NULL;
	return parse_fixed(opt, arg);
}

/* Zero is "auto" to the kernel, and no weight. */
static const char *parse_weight(const struct abe_opt *opt, struct abe_arg *arg)
{
	const char *why = parse_protect(opt, arg);

	if (!why && !arg->value && strcmp(arg->text, opt->words[0]))
		why = "is too small";
	return why;
}

static const char *parse_dscp(const struct abe_opt *opt, struct abe_arg *arg)
{
	(void)opt;
	if (!strcmp(arg->text, "none"))
		return NULL;
	return abe_get_dscps(arg->text, &arg->value);
}

static const char *parse_mark(const struct abe_opt *opt, struct abe_arg *arg)
{
	__u64 mask = UINT32_MAX;
	const char *end;

	(void)opt;
	if (!strcmp(arg->text, "none"))
		return NULL;
	if (!abe_get_whole(arg->text, UINT32_MAX, &arg->value, &end))
		return "is not a mark";
	if (*end == '/' && !abe_get_whole(end + 1, UINT32_MAX, &mask, &end))
		return "has a mask that is not a number of 32 bits";
	if (*end)
		return "is not a mark";
	arg->mask = mask;
	return NULL;
}

static const char *parse_seed(const struct abe_opt *opt, struct abe_arg *arg)
{
	const char *end;

	(void)opt;
	if (!abe_get_whole(arg->text, UINT64_MAX, &arg->value, &end) || *end)
		return "is not a whole number of 64 bits";
	return NULL;
}

/*
 * Printing an attribute
 */

static bool has_attr(struct rtattr *tb[], int attr, size_t size)
{
	return tb[attr] && RTA_PAYLOAD(tb[attr]) >= size;
}

static __u32 attr_u32(struct rtattr *tb[], int attr)
{
	__u32 value;

	memcpy(&value, RTA_DATA(tb[attr]), sizeof(value));
	return value;
}

static __u64 attr_u64(struct rtattr *tb[], int attr)
{
	__u64 value;

	memcpy(&value, RTA_DATA(tb[attr]), sizeof(value));
	return value;
}

static __u32 unit_of(struct rtattr *tb[])
{
	if (!has_attr(tb, TCA_ABE_UNIT, sizeof(__u32)))
		return __TCA_ABE_UNIT_MAX;
	return attr_u32(tb, TCA_ABE_UNIT);
}

/* The name of a value, of which a newer kernel may have more. */
static const char *word_of(const struct abe_opt *opt, __u32 value, char *buf)
{
	__u32 i;

	for (i = 0; opt->words[i]; i++)
		if (i == value)
			return opt->words[i];
	return abe_number_text(buf, value);
}

static void print_word(const char *key, const char *word)
{
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s ", key);
	print_color_string(PRINT_ANY, COLOR_NONE, key, "%s ", word);
}

static void print_unit(const struct abe_opt *opt, struct rtattr *tb[])
{
	char buf[ABE_TEXT];

	print_color_string(PRINT_ANY, COLOR_NONE, opt->name, "%s ",
			   word_of(opt, unit_of(tb), buf));
}

static void print_enum(const struct abe_opt *opt, struct rtattr *tb[])
{
	char buf[ABE_TEXT];

	print_word(opt->name, word_of(opt, attr_u32(tb, opt->attr), buf));
}

static void print_value(const struct abe_opt *opt, struct rtattr *tb[])
{
	char json[ABE_TEXT], text[ABE_TEXT];
	__u64 value;

	if (opt->type->size == sizeof(value))
		value = attr_u64(tb, opt->attr);
	else
		value = attr_u32(tb, opt->attr);
	abe_print_number(opt->name, abe_number_text(json, value),
			 opt->type->text(text, value));
}

static void print_threshold(const struct abe_opt *opt, struct rtattr *tb[])
{
	__u32 value = attr_u32(tb, opt->attr);
	char json[ABE_TEXT], text[ABE_TEXT];

	abe_number_text(json, value);
	switch (unit_of(tb)) {
	case TCA_ABE_UNIT_TIME:
		abe_time_text(text, value);
		break;
	case TCA_ABE_UNIT_BYTES:
		abe_size_text(text, value);
		break;
	case TCA_ABE_UNIT_PACKETS:
		snprintf(text, sizeof(text), "%up", value);
		break;
	default:
		abe_number_text(text, value);
	}
	abe_print_number(opt->name, json, text);
}

static void print_fixed(const struct abe_opt *opt, struct rtattr *tb[])
{
	char buf[ABE_TEXT];

	abe_fixed_text(buf, attr_u32(tb, opt->attr), opt->bits);
	abe_print_number(opt->name, buf, buf);
}

static void print_fixed_or_word(const struct abe_opt *opt, struct rtattr *tb[])
{
	if (attr_u32(tb, opt->attr))
		print_fixed(opt, tb);
	else
		print_word(opt->name, opt->words[0]);
}

static void print_flag(const struct abe_opt *opt, struct rtattr *tb[])
{
	struct nla_bitfield32 flags;
	bool on;

	memcpy(&flags, RTA_DATA(tb[opt->attr]), sizeof(flags));
	on = flags.value & opt->bits;
	print_color_bool(PRINT_JSON, COLOR_NONE, opt->name, NULL, on);
	abe_print_text(on ? "" : "no");
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s ", opt->name);
}

/* As text three and more in a row are a range; JSON has every number. */
static void print_dscp(const struct abe_opt *opt, struct rtattr *tb[])
{
	__u64 set = attr_u64(tb, opt->attr);
	const char *sep = " ";
	char buf[ABE_TEXT];
	int from, to;

	open_json_array(PRINT_JSON, opt->name);
	abe_print_text(opt->name);
	for (from = 0; from < 64; from++) {
		if (!(set >> from & 1))
			continue;
		print_color_u64(PRINT_JSON, COLOR_NONE, NULL, NULL, from);
		abe_print_text(sep);
		abe_print_text(abe_number_text(buf, from));
		sep = ",";
		for (to = from; to < 63 && set >> (to + 1) & 1; to++)
			;
		if (is_json_context() || to < from + 2)
			continue;
		abe_print_text("-");
		abe_print_text(abe_number_text(buf, to));
		from = to;
	}
	abe_print_text(set ? " " : " none ");
	close_json_array(PRINT_JSON, NULL);
}

static void print_mark(const struct abe_opt *opt, struct rtattr *tb[])
{
	__u32 mask = UINT32_MAX;
	char buf[ABE_TEXT];

	if (has_attr(tb, TCA_ABE_GREEN_MASK, sizeof(mask)))
		mask = attr_u32(tb, TCA_ABE_GREEN_MASK);
	snprintf(buf, sizeof(buf), "0x%x/0x%x", attr_u32(tb, opt->attr), mask);
	print_word(opt->name, mask ? buf : "none");
}

/*
 * The options
 */

static const struct abe_type
	unit_type = { NULL, print_unit, NULL, 4 },
	flag_type = { NULL, print_flag, NULL, sizeof(struct nla_bitfield32) },
	threshold_type = { parse_threshold, print_threshold, NULL, 4 },
	time_type = { parse_time, print_value, abe_time_text, 4 },
	size_type = { parse_size, print_value, abe_size_text, 4 },
	rate_type = { parse_rate, print_value, abe_rate_text, 8 },
	seed_type = { parse_seed, print_value, abe_number_text, 8 },
	fixed_type = { parse_fixed, print_fixed, NULL, 4 },
	weight_type = { parse_weight, print_fixed_or_word, NULL, 4 },
	protect_type = { parse_protect, print_fixed_or_word, NULL, 4 },
	enum_type = { parse_enum, print_enum, NULL, 4 },
	dscp_type = { parse_dscp, print_dscp, NULL, 8 },
	mark_type = { parse_mark, print_mark, NULL, 4 };

#define OPT(name, type, attr)		{ name, type, NULL, attr, 0 }
#define OPT_ENUM(name, words, attr)	{ name, &enum_type, words, attr, 0 }
#define OPT_FLAG(name, flag) \
	{ name, &flag_type, NULL, TCA_ABE_FLAGS, TCA_ABE_F_##flag }
#define OPT_FIXED(name, attr, bits)	{ name, &fixed_type, NULL, attr, bits }

/* In the order of the grammar; the unit comes first. */
static const struct abe_opt abe_opts[] = {
	{ "unit", &unit_type, abe_units, TCA_ABE_UNIT, 0 },
	OPT("rate", &rate_type, TCA_ABE_RATE),
	OPT("limit", &threshold_type, TCA_ABE_LIMIT),
	OPT("green_limit", &threshold_type, TCA_ABE_GREEN_LIMIT),
	OPT("min", &threshold_type, TCA_ABE_MIN_TH),
	OPT("max", &threshold_type, TCA_ABE_MAX_TH),
	OPT_FIXED("probability", TCA_ABE_PROBABILITY, 31),
	{ "weight", &weight_type, abe_auto, TCA_ABE_WEIGHT, 31 },
	OPT("avpkt", &size_type, TCA_ABE_AVPKT),
	OPT_FLAG("gentle", GENTLE),
	OPT_FLAG("adaptive", ADAPTIVE),
	OPT_FLAG("bytemode", BYTEMODE),
	OPT_FLAG("ecn", ECN),
	OPT_FLAG("harddrop", HARDDROP),
	OPT_ENUM("spacing", abe_spacings, TCA_ABE_SPACING),
	OPT_ENUM("loop", abe_loops, TCA_ABE_LOOP),
	OPT("rtt", &time_type, TCA_ABE_RTT),
	OPT("interval", &time_type, TCA_ABE_INTERVAL),
	OPT_FIXED("k1", TCA_ABE_K1, 16),
	OPT("k2", &time_type, TCA_ABE_K2),
	OPT("k3", &time_type, TCA_ABE_K3),
	OPT("k4", &time_type, TCA_ABE_K4),
	OPT_FIXED("gamma1", TCA_ABE_GAMMA1, 31),
	OPT_FIXED("gamma2", TCA_ABE_GAMMA2, 31),
	OPT_FIXED("gamma3", TCA_ABE_GAMMA3, 31),
	OPT_FIXED("lambda", TCA_ABE_LAMBDA, 31),
	OPT("offset", &time_type, TCA_ABE_OFFSET),
	OPT("offset_max", &time_type, TCA_ABE_OFFSET_MAX),
	OPT_FIXED("alpha_max", TCA_ABE_ALPHA_MAX, 16),
	OPT("green_dscp", &dscp_type, TCA_ABE_GREEN_DSCP),
	OPT("green_mark", &mark_type, TCA_ABE_GREEN_MARK),
	OPT_FLAG("flat", FLAT),
	OPT_FLAG("split_gso", SPLIT_GSO),
	OPT("seed", &seed_type, TCA_ABE_SEED),
	OPT("memory_limit", &size_type, TCA_ABE_MEMORY_LIMIT),
	{ "protect", &protect_type, abe_off, TCA_ABE_PROTECT, 31 },
};

/*
 * Command line to attributes
 */

/*
 * The option that a word names. The words of a unit and of a flag are their
 * values too.
 */
static const struct abe_opt *find_opt(const char *word, __u64 *value)
{
	const struct abe_opt *opt;
	struct abe_arg arg = { .text = word };

	for (opt = abe_opts; opt < abe_opts + ARRAY_SIZE(abe_opts); opt++) {
		*value = 1;
		if (opt->type == &unit_type) {
			if (parse_enum(opt, &arg))
				continue;
			*value = arg.value;
			return opt;
		}
		if (!strcmp(word, opt->name))
			return opt;
		*value = 0;
		if (opt->type == &flag_type && !strncmp(word, "no", 2) &&
		    !strcmp(word + 2, opt->name))
			return opt;
	}
	return NULL;
}

static int parse_args(int argc, char **argv, struct abe_arg *args)
{
	for (; argc > 0; argc--, argv++) {
		const struct abe_opt *opt;
		const char *why;
		struct abe_arg *arg;
		__u64 value;

		if (!strcmp(*argv, "help")) {
			explain();
			return -1;
		}
		opt = find_opt(*argv, &value);
		if (!opt) {
			fprintf(stderr, "abe: what is \"%s\"?\n", *argv);
			explain();
			return -1;
		}
		arg = &args[opt - abe_opts];
		if (arg->text) {
			fprintf(stderr, "abe: %s \"%s\" is given twice\n",
				opt->name, *argv);
			return -1;
		}
		if (!opt->type->parse) {
			arg->text = *argv;
			arg->value = value;
			continue;
		}
		if (argc < 2) {
			fprintf(stderr, "abe: %s needs an argument\n",
				opt->name);
			return -1;
		}
		argc--;
		arg->text = *++argv;
		why = opt->type->parse(opt, arg);
		if (why) {
			fprintf(stderr, "abe: %s \"%s\" %s\n", opt->name,
				arg->text, why);
			return -1;
		}
	}
	return 0;
}

/*
 * A threshold with a suffix says itself what it counts. That has to be the
 * unit that is named, or names it. Without either a number is refused: who
 * types "limit 1000" means packets, and would get a millisecond.
 */
static int check_unit(struct abe_arg *args)
{
	static const char *const nouns[] = {
		[TCA_ABE_UNIT_TIME] = "a duration",
		[TCA_ABE_UNIT_BYTES] = "a size",
		[TCA_ABE_UNIT_PACKETS] = "a count of packets",
	};
	struct abe_arg *unit = &args[0];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(abe_opts); i++) {
		const struct abe_arg *arg = &args[i];

		if (abe_opts[i].type != &threshold_type || !arg->text ||
		    arg->unit < 0)
			continue;
		if (!unit->text) {
			unit->text = arg->text;
			unit->value = arg->unit;
		} else if (unit->value != (__u64)arg->unit) {
			fprintf(stderr,
				"abe: %s \"%s\" is %s, but \"%s\" says %s\n",
				abe_opts[i].name, arg->text, nouns[arg->unit],
				unit->text, abe_units[unit->value]);
			return -1;
		}
	}
	for (i = 0; i < ARRAY_SIZE(abe_opts); i++) {
		const struct abe_arg *arg = &args[i];

		if (abe_opts[i].type != &threshold_type || unit->text ||
		    !arg->value)
			continue;
		fprintf(stderr,
			"abe: %s \"%s\" has no unit: %sp (packets), %sms or %sb (bytes)\n",
			abe_opts[i].name, arg->text, arg->text, arg->text,
			arg->text);
		return -1;
	}
	return 0;
}

static int encode_arg(struct nlmsghdr *n, const struct abe_opt *opt,
		      const struct abe_arg *arg)
{
	__u32 low = arg->value;

	if (opt->type->size == sizeof(arg->value))
		return addattr_l(n, ABE_MSG_MAX, opt->attr, &arg->value,
				 sizeof(arg->value));
	if (opt->type == &mark_type &&
	    addattr_l(n, ABE_MSG_MAX, TCA_ABE_GREEN_MASK, &arg->mask,
		      sizeof(arg->mask)))
		return -1;
	return addattr_l(n, ABE_MSG_MAX, opt->attr, &low, sizeof(low));
}

static int encode_args(struct nlmsghdr *n, const struct abe_arg *args)
{
	struct nla_bitfield32 flags = { 0 };
	struct rtattr *nest;
	size_t i;

	nest = addattr_nest(n, ABE_MSG_MAX, TCA_OPTIONS | NLA_F_NESTED);
	for (i = 0; i < ARRAY_SIZE(abe_opts); i++) {
		const struct abe_opt *opt = &abe_opts[i];

		if (!args[i].text)
			continue;
		if (opt->type == &flag_type) {
			flags.selector |= opt->bits;
			flags.value |= args[i].value ? opt->bits : 0;
		} else if (encode_arg(n, opt, &args[i])) {
			return -1;
		}
	}
	if (flags.selector && addattr_l(n, ABE_MSG_MAX, TCA_ABE_FLAGS, &flags,
					sizeof(flags)))
		return -1;
	addattr_nest_end(n, nest);
	return 0;
}

static int abe_parse_qopt(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev)
{
	struct abe_arg args[ARRAY_SIZE(abe_opts)] = { 0 };

	(void)qu;
	(void)dev;
	if (parse_args(argc, argv, args) || check_unit(args))
		return -1;
	return encode_args(n, args);
}

static int abe_parse_copt(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev)
{
	(void)qu;
	(void)argc;
	(void)argv;
	(void)n;
	(void)dev;
	fprintf(stderr,
		"abe: the classes 1 (green) and 2 (blue) are always there and have no options\n");
	return -1;
}

/*
 * Answers of the kernel
 */

static int abe_print_qopt(const struct qdisc_util *qu, FILE *f,
			  struct rtattr *options)
{
	struct rtattr *tb[TCA_ABE_MAX + 1] = { 0 };
	const struct abe_opt *opt;

	(void)qu;
	(void)f;
	if (!options)
		return 0;
	parse_rtattr(tb, TCA_ABE_MAX, RTA_DATA(options), RTA_PAYLOAD(options));
	for (opt = abe_opts; opt < abe_opts + ARRAY_SIZE(abe_opts); opt++)
		if (has_attr(tb, opt->attr, opt->type->size))
			opt->type->print(opt, tb);
	return 0;
}

static int abe_print_copt(const struct qdisc_util *qu, FILE *f,
			  struct rtattr *options)
{
	(void)qu;
	(void)f;
	(void)options;
	return 0;
}

static int abe_print_xstats(const struct qdisc_util *qu, FILE *f,
			    struct rtattr *xstats)
{
	(void)qu;
	(void)f;
	if (xstats)
		abe_print_stats(xstats);
	return 0;
}

struct qdisc_util abe_qdisc_util = {
	.id = "abe",
	.parse_qopt = abe_parse_qopt,
	.print_qopt = abe_print_qopt,
	.print_xstats = abe_print_xstats,
	.parse_copt = abe_parse_copt,
	.print_copt = abe_print_copt,
};
