// SPDX-License-Identifier: GPL-2.0
/*
 * abemon: an HTTP server for Prometheus, on libmicrohttpd, in one thread.
 *
 * A scrape takes a reading when it comes. A client that is slow or silent holds nobody up:
 * there is one answer to a connection, which has PATIENCE to take it. With all CONNECTIONS
 * in use the next ones wait, as long as that for each CONNECTIONS ahead of them.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <microhttpd.h>
#include "../lib/cli.h"
#include "../lib/clock.h"
#include "metrics.h"
#include "server.h"

#define CONNECTIONS	200
#define PATIENCE	(10 * NSEC_PER_SEC)

#define OPENMETRICS	"application/openmetrics-text"

struct connection {
	struct connection	*next;
	int			fd;
	__s64			since;
};

static struct {
	const char		*(*take)(struct reading *reading);
	struct reading		*reading;
	struct connection	*oldest, **newest;
	bool			ended;		/* one has */
} server;

/**
 * open_server - listen
 * @where:	"PORT", "ADDR:PORT" or "[ADDR]:PORT", with an address in numbers; without one
 *		on this host only
 *
 * Return: a socket. What is wrong ends the program.
 */
int open_server(const char *where)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
	};
	const char *colon = strrchr(where, ':'), *port = colon ? colon + 1 : where;
	char addr[64] = "127.0.0.1";
	struct addrinfo *info;
	int fd, one = 1;

	if (colon) {
		size_t length = colon - where, brackets = *where == '[' && colon[-1] == ']';

		snprintf(addr, sizeof(addr), "%.*s", (int)(length - 2 * brackets),
			 where + brackets);
		/* Where would the address end? */
		if (!brackets && strchr(addr, ':'))
			*addr = '\0';
	}
	if (!*addr || !*port || strspn(port, "0123456789") != strlen(port) || strlen(port) > 5 ||
	    atoi(port) < 1 || atoi(port) > 65535 || getaddrinfo(addr, port, &hints, &info))
		usage("--prometheus %s: want PORT, ADDR:PORT or [ADDR]:PORT, PORT from 1 to 65535",
		      where);
	fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	/* Those of an earlier abemon may still be about to end. */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, info->ai_addr, info->ai_addrlen) || listen(fd, SOMAXCONN))
		die_errno("--prometheus %s", where);
	freeaddrinfo(info);
	return fd;
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned int status,
			      const char *type, char *text, size_t length)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(length, text,
									MHD_RESPMEM_MUST_FREE);
	enum MHD_Result result;

	if (!response) {
		free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer_words(struct MHD_Connection *connection, unsigned int status,
				    const char *words)
{
	char *text;
	int length = asprintf(&text, "%s\n", words);

	return length < 0 ? MHD_NO :
	       answer(connection, status, "text/plain; charset=utf-8", text, length);
}

/* Accept may stand on several lines. */
static enum MHD_Result on_header(void *open, enum MHD_ValueKind kind, const char *key,
				 const char *value)
{
	(void)kind;
	if (value && !strcasecmp(key, MHD_HTTP_HEADER_ACCEPT) && strstr(value, OPENMETRICS))
		*(bool *)open = true;
	return MHD_YES;
}

static enum MHD_Result answer_metrics(struct MHD_Connection *connection)
{
	bool open = false;
	const char *wrong = server.take(server.reading);
	char *text = NULL;
	size_t length;
	FILE *f;

	MHD_get_connection_values(connection, MHD_HEADER_KIND, on_header, &open);
	if (wrong) {
		complain("no reading: %s", wrong);
		return answer_words(connection, MHD_HTTP_SERVICE_UNAVAILABLE, wrong);
	}
	f = open_memstream(&text, &length);
	if (!f)
		return MHD_NO;
	write_metrics(f, server.reading, open);
	if (fclose(f)) {
		free(text);
		return MHD_NO;
	}
	return answer(connection, MHD_HTTP_OK,
		      open ? OPENMETRICS "; version=1.0.0; charset=utf-8" :
			     "text/plain; version=0.0.4; charset=utf-8", text, length);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_size, void **state)
{
	(void)cls, (void)version, (void)upload, (void)upload_size, (void)state;
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return answer_words(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD only");
	if (!strcmp(url, "/metrics"))
		return answer_metrics(connection);
	if (!strcmp(url, "/"))
		return answer_words(connection, MHD_HTTP_OK, "abemon: see /metrics");
	return answer_words(connection, MHD_HTTP_NOT_FOUND, "see /metrics");
}

static int fd_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode what)
{
	struct connection *c, **at = &server.oldest;

	(void)cls;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		c = calloc(1, sizeof(*c));
		*context = c;
		if (!c)
			return;	/* it may stay */
		c->fd = fd_of(connection);
		c->since = now(CLOCK_MONOTONIC);
		*server.newest = c;
		server.newest = &c->next;
		return;
	}
	server.ended = true;
	c = *context;
	while (*at && *at != c)
		at = &(*at)->next;
	if (!c || !*at)
		return;
	*at = c->next;
	if (server.newest == &c->next)
		server.newest = at;
	free(c);
}

/* End those that have had their time; ms until the next one has, -1: there is none. */
static int end_connections(void)
{
	__s64 time = now(CLOCK_MONOTONIC);

	for (struct connection *c = server.oldest; c; c = c->next) {
		if (time - c->since < PATIENCE)
			return (PATIENCE - (time - c->since)) / NSEC_PER_MSEC + 1;
		/* The library sees its end, and forgets it. */
		shutdown(c->fd, SHUT_RDWR);
	}
	return -1;
}

/* What the library has to say, such as that a client went away, is nobody's business. */
static void be_silent(void *cls, const char *fmt, va_list ap)
{
	(void)cls, (void)fmt, (void)ap;
}

/**
 * serve - answer scrapes, until a signal ends the program
 * @listening:	of open_server()
 * @take:	gets a reading for a scrape; returns NULL, or why there is none
 * @reading:	to get it into
 */
noreturn void serve(int listening, const char *(*take)(struct reading *reading),
		    struct reading *reading)
{
	/* A signal ends us: for a leak checker it must be somewhere then. */
	static struct MHD_Daemon *daemon;
	struct pollfd fd = { .events = POLLIN };
	MHD_UNSIGNED_LONG_LONG library;

	server.take = take;
	server.reading = reading;
	server.newest = &server.oldest;
	daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, NULL,
				  MHD_OPTION_LISTEN_SOCKET, listening,
				  MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CONNECTIONS,
				  MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)16384,
				  MHD_OPTION_NOTIFY_CONNECTION, on_connection, NULL,
				  MHD_OPTION_EXTERNAL_LOGGER, be_silent, NULL,
				  MHD_OPTION_END);
	if (!daemon)
		die_errno("libmicrohttpd");
	fd.fd = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	for (;;) {
		int wait = end_connections();

		if (MHD_get_timeout(daemon, &library) == MHD_YES &&
		    (wait < 0 || library < (unsigned int)wait))
			wait = library;
		if (poll(&fd, 1, wait) < 0 && errno != EINTR)
			die_errno("poll");
		/* With all in use it listens again in the call after one has ended. */
		do {
			server.ended = false;
			if (MHD_run(daemon) != MHD_YES)
				die_errno("libmicrohttpd");
		} while (server.ended);
	}
}
