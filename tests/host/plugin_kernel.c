// SPDX-License-Identifier: GPL-2.0
/*
 * Stands in for the kernel's side of "tc qdisc" and "tc class", so that the
 * stock tc with the plugin can be tested without the module and without root.
 *
 * Preloaded into tc. A request to make or change a qdisc or class is appended
 * to the file $ABE_SENT and acknowledged; a request to show them is answered
 * with the messages in the file $ABE_DUMP. Everything else goes to the kernel.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static char answer[1 << 16];
static size_t answer_len;

static void *next(const char *name)
{
	void *sym = dlsym(RTLD_NEXT, name);

	if (!sym)
		abort();
	return sym;
}

static void add_done(const struct nlmsghdr *req, int type, int flags)
{
	struct {
		struct nlmsghdr n;
		struct nlmsgerr e;
	} done = {
		.n.nlmsg_len = sizeof(done),
		.n.nlmsg_type = type,
		.n.nlmsg_flags = flags,
		.e.msg = *req,
	};

	memcpy(answer + answer_len, &done, sizeof(done));
	answer_len += sizeof(done);
}

/* Sender and sequence number of @req into all messages of the answer. */
static void address(int fd, const struct nlmsghdr *req)
{
	struct sockaddr_nl local = { 0 };
	socklen_t len = sizeof(local);
	struct nlmsghdr *n = (struct nlmsghdr *)answer;
	int left = answer_len;

	getsockname(fd, (struct sockaddr *)&local, &len);
	for (; NLMSG_OK(n, (unsigned int)left); n = NLMSG_NEXT(n, left)) {
		n->nlmsg_seq = req->nlmsg_seq;
		n->nlmsg_pid = local.nl_pid;
	}
}

/* Whether the request is one of those answered here. */
static int take(int fd, const struct nlmsghdr *req)
{
	const char *path;
	FILE *f;

	switch (req->nlmsg_type) {
	case RTM_NEWQDISC:
	case RTM_NEWTCLASS:
		path = getenv("ABE_SENT");
		f = path ? fopen(path, "ab") : NULL;
		if (!f || fwrite(req, req->nlmsg_len, 1, f) != 1)
			abort();
		fclose(f);
		answer_len = 0;
		add_done(req, NLMSG_ERROR, 0);
		break;
	case RTM_GETQDISC:
	case RTM_GETTCLASS:
		path = getenv("ABE_DUMP");
		f = path ? fopen(path, "rb") : NULL;
		if (!f)
			abort();
		answer_len = fread(answer, 1, sizeof(answer) / 2, f);
		fclose(f);
		add_done(req, NLMSG_DONE, NLM_F_MULTI);
		break;
	default:
		return 0;
	}
	address(fd, req);
	return 1;
}

ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	ssize_t (*real)(int fd, const void *buf, size_t len, int flags) = next("send");

	if (len >= sizeof(struct nlmsghdr) && take(fd, buf))
		return len;
	return real(fd, buf, len, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t (*real)(int fd, const struct msghdr *msg, int flags) = next("sendmsg");
	const struct nlmsghdr *req = msg->msg_iov->iov_base;

	/* what has to be kept comes in one piece, a dump's header may not */
	if (msg->msg_iov->iov_len >= sizeof(*req) && take(fd, req))
		return req->nlmsg_len;
	return real(fd, msg, flags);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t (*real)(int fd, struct msghdr *msg, int flags) = next("recvmsg");
	size_t len = answer_len;

	if (!answer_len)
		return real(fd, msg, flags);
	memset(msg->msg_name, 0, msg->msg_namelen);
	((struct sockaddr_nl *)msg->msg_name)->nl_family = AF_NETLINK;
	msg->msg_flags = 0;
	if (msg->msg_iov->iov_len < len) {
		msg->msg_flags = MSG_TRUNC;
		len = msg->msg_iov->iov_len;
	}
	memcpy(msg->msg_iov->iov_base, answer, len);
	if (flags & MSG_TRUNC)
		len = answer_len;
	if (!(flags & MSG_PEEK))
		answer_len = 0;
	return len;
}
