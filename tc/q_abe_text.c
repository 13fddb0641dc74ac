// SPDX-License-Identifier: GPL-2.0
/*
 * Alternative Best-Effort, tc plugin: numbers from words and back.
 *
 * The suffixes of times, sizes and rates are those of tc, whose functions tell
 * what one of each is worth. The number before the suffix is read here: tc's
 * own functions wrap, and take "nan" and "-1".
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "q_abe.h"

/* A decimal number, and where it ends. */
static bool get_decimal(const char *str, long double *value, const char **end)
{
	char *stop;

	if (!isdigit((unsigned char)*str) && *str != '.')
		return false;
	if (str[0] == '0' && tolower((unsigned char)str[1]) == 'x')
		return false;
	errno = 0;
	*value = strtold(str, &stop);
	*end = stop;
	return stop != str && !errno;
}

/* "2ms" for 2 and "ms". A suffix has letters only, and not many. */
static bool get_one(char *buf, int number, const char *suffix)
{
	const char *c;

	for (c = suffix; *c; c++)
		if (!isalpha((unsigned char)*c))
			return false;
	return snprintf(buf, ABE_TEXT, "%d%s", number, suffix) < ABE_TEXT;
}

/*
 * Round to the nearest whole number. What is not zero must not become zero,
 * which for some options has a meaning of its own.
 */
static const char *get_rounded(long double real, __u64 max, __u64 *value)
{
	if (real >= (long double)max + 1)
		return "is too large";
	*value = real;
	if (real - *value >= 0.5L && *value < max)
		++*value;
	if (!*value && real > 0)
		return "is too small";
	return NULL;
}

bool abe_get_whole(const char *str, __u64 max, __u64 *value, const char **end)
{
	bool hex = str[0] == '0' && tolower((unsigned char)str[1]) == 'x';
	char *stop;

	if (hex)
		str += 2;
	if (hex ? !isxdigit((unsigned char)*str) : !isdigit((unsigned char)*str))
		return false;
	errno = 0;
	*value = strtoull(str, &stop, hex ? 16 : 10);
	*end = stop;
	return !errno && *value <= max;
}

/**
 * abe_get_quantity() - a time, a size or a count, whatever the suffix says
 * @text: the word
 * @value: microseconds, bytes or packets
 * @unit: enum tca_abe_unit, -1 without suffix
 *
 * Return: what is wrong with the word, or NULL.
 */
const char *abe_get_quantity(const char *text, __u64 *value, int *unit)
{
	long double real;
	const char *suffix;
	char one[ABE_TEXT];
	unsigned int scale = 1;

	if (!get_decimal(text, &real, &suffix))
		return "is not a number";
	if (!get_one(one, 1, suffix))
		return "has an unknown suffix";
	if (!*suffix)
		*unit = -1;
	else if (!strcasecmp(suffix, "p"))
		*unit = TCA_ABE_UNIT_PACKETS;
	else if (!get_time(&scale, one))
		*unit = TCA_ABE_UNIT_TIME;
	else if (!get_size(&scale, one))
		*unit = TCA_ABE_UNIT_BYTES;
	else
		return "has an unknown suffix";
	real *= scale;
	if (real > UINT32_MAX)
		return "is too large";
	/* microseconds, bytes and packets are not divided any further */
	if (scale == 1 && real != (__u64)real)
		return "is not a whole number";
	return get_rounded(real, UINT32_MAX, value);
}

const char *abe_get_rate(const char *text, __u64 *value)
{
	long double real;
	const char *suffix;
	char eight[ABE_TEXT];
	__u64 scale;

	/* eight of the unit, which may be a bit */
	if (!get_decimal(text, &real, &suffix) ||
	    !get_one(eight, 8, suffix) || get_rate64(&scale, eight))
		return "is not a rate";
	return get_rounded(real * scale / 8, UINT64_MAX, value);
}

/* A number or a percentage in fixed point. */
const char *abe_get_fixed(const char *text, unsigned int bits, __u64 *value)
{
	long double real;
	const char *suffix;

	if (!get_decimal(text, &real, &suffix))
		return "is not a number";
	if (!strcmp(suffix, "%"))
		real /= 100;
	else if (*suffix)
		return "is not a number";
	return get_rounded(real * (1ULL << bits), UINT32_MAX, value);
}

/* One DSCP by number or name; the word has @len characters. -1: neither. */
static int get_dscp(const char *str, size_t len)
{
	static const struct {
		const char *name;
		int value;
	} names[] = {
		{ "default", 0 }, { "df", 0 }, { "le", 1 },
		{ "va", 44 }, { "nqb", 45 }, { "ef", 46 },
	};
	char word[ABE_TEXT];
	const char *end;
	__u64 value;
	size_t i;

	if (!len || len >= sizeof(word))
		return -1;
	memcpy(word, str, len);
	word[len] = '\0';
	if (abe_get_whole(word, 63, &value, &end))
		return *end ? -1 : (int)value;
	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcasecmp(word, names[i].name))
			return names[i].value;
	/* CSn is 8n; AFxy, class x and drop precedence y, is 8x + 2y */
	if (len == 3 && !strncasecmp(word, "cs", 2) &&
	    word[2] >= '0' && word[2] <= '7')
		return 8 * (word[2] - '0');
	if (len == 4 && !strncasecmp(word, "af", 2) &&
	    word[2] >= '1' && word[2] <= '4' &&
	    word[3] >= '1' && word[3] <= '3')
		return 8 * (word[2] - '0') + 2 * (word[3] - '0');
	return -1;
}

/* Numbers, names and ranges, with commas between. */
const char *abe_get_dscps(const char *text, __u64 *set)
{
	for (*set = 0;; text++) {
		size_t len = strcspn(text, ",-");
		int from = get_dscp(text, len);
		int to = from;

		text += len;
		if (*text == '-') {
			len = strcspn(++text, ",-");
			to = get_dscp(text, len);
			text += len;
		}
		if (from < 0 || to < 0 || *text == '-')
			return "is not a list of DSCPs";
		if (from > to)
			return "has a range that goes backwards";
		for (; from <= to; from++)
			*set |= 1ULL << from;
		if (!*text)
			return NULL;
	}
}

const char *abe_number_text(char *buf, __u64 value)
{
	snprintf(buf, ABE_TEXT, "%llu", (unsigned long long)value);
	return buf;
}

/* In the largest unit that leaves something before the point. */
const char *abe_time_text(char *buf, __u64 us)
{
	if (us >= 1000000)
		snprintf(buf, ABE_TEXT, "%.15gs", us / 1e6);
	else if (us >= 1000)
		snprintf(buf, ABE_TEXT, "%.15gms", us / 1e3);
	else
		snprintf(buf, ABE_TEXT, "%uus", (unsigned int)us);
	return buf;
}

/* In the largest unit that divides it. */
const char *abe_size_text(char *buf, __u64 bytes)
{
	static const char *const suffix[] = { "b", "Kb", "Mb" };
	unsigned int i;

	for (i = 0; bytes && !(bytes % 1024) && i + 1 < ARRAY_SIZE(suffix); i++)
		bytes /= 1024;
	snprintf(buf, ABE_TEXT, "%llu%s", (unsigned long long)bytes, suffix[i]);
	return buf;
}

/* Likewise. */
const char *abe_rate_text(char *buf, __u64 rate)
{
	static const char *const suffix[] = { "bit", "Kbit", "Mbit", "Gbit" };
	unsigned int i;

	if (rate > UINT64_MAX / 8) {
		snprintf(buf, ABE_TEXT, "%lluBps", (unsigned long long)rate);
		return buf;
	}
	rate *= 8;
	for (i = 0; rate && !(rate % 1000) && i + 1 < ARRAY_SIZE(suffix); i++)
		rate /= 1000;
	snprintf(buf, ABE_TEXT, "%llu%s", (unsigned long long)rate, suffix[i]);
	return buf;
}

/*
 * The shortest decimal number that is this one in fixed point. Five digits
 * keep all whole numbers of Q16.16 from being written with an exponent.
 */
const char *abe_fixed_text(char *buf, __u64 value, unsigned int bits)
{
	double real = (double)value / (1ULL << bits);
	int digits;

	for (digits = 5; digits < 17; digits++) {
		snprintf(buf, ABE_TEXT, "%.*g", digits, real);
		if ((__u64)(strtod(buf, NULL) * (1ULL << bits) + 0.5) == value)
			break;
	}
	return buf;
}

void abe_print_text(const char *text)
{
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", text);
}

/* tc's own helper would give JSON no more than six digits of a ratio. */
void abe_print_number(const char *key, const char *json, const char *text)
{
	if (is_json_context()) {
		jsonw_name(get_json_writer(), key);
		jsonw_printf(get_json_writer(), "%s", json);
	} else {
		abe_print_text(key);
		print_color_string(PRINT_FP, COLOR_NONE, NULL, " %s ", text);
	}
}
