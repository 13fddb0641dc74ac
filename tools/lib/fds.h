/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For programs that open sockets: where standard input, output or error is
 * closed, the first socket would get its number, and the peer what is printed.
 */
#ifndef FDS_H
#define FDS_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* Occupy 0, 1 and 2. Those that were closed fail to read and write as before. */
static inline void occupy_standard_fds(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		/* the lowest number that is free is this one */
		if (open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
			_Exit(1);
	}
}

#endif /* FDS_H */
