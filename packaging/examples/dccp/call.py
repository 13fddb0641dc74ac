#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A call over DCCP, in Python: sends a frame of speech each 20 ms, with as many bytes as the
congestion control has room for.

  call.py listen 5004            prints what each caller's frames came to
  call.py HOST 5004 [SECONDS]    calls

call.c does the same, and each can talk to the other.
"""

import socket
import struct
import sys
import time

SOCK_DCCP, IPPROTO_DCCP, SOL_DCCP = 6, 33, 269
SERVICE, CCID, TX_CCID, TX_INFO = 2, 13, 14, 192  # DCCP_SOCKOPT_...
EF = 46 << 2  # green where the queue is abe

FRAME = 0.02  # s
MODES = (160, 80, 40, 20)  # the codec's: bytes of a frame, as of 64, 32, 16 and 8 kb/s
# struct tfrc_tx_info_ext of linux/dccp_tfrc.h
INFO = struct.Struct("=QQIIIIIIQIIIIIIBBBBIIIII")
INFO_PACKET, INFO_INTERVAL, INFO_FEEDBACK = 9, 10, 21


def dccp_socket(family):
    """A socket with the best list of CCIDs that this kernel knows."""
    try:
        s = socket.socket(family, SOCK_DCCP, IPPROTO_DCCP)
    except OSError as error:  # a real program: UDP from here on
        sys.exit(f"call.py: no DCCP (modprobe dccp_ipv4): {error}")
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(SOL_DCCP, SERVICE, b"RTPA")  # RTP audio (RFC 5762)
    try:
        s.setsockopt(SOL_DCCP, CCID, bytes([4, 3, 2]))
    except OSError:
        s.setsockopt(SOL_DCCP, CCID, bytes([3, 2]))
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, EF)
    else:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, EF)
    return s


def choose(s):
    """The largest mode that fits into what may be sent each 20 ms.

    Python's getsockopt() cannot put a time between packets into the buffer, so the kernel
    takes the mean of those that were sent, which is that of the frames.
    """
    try:
        info = INFO.unpack(s.getsockopt(SOL_DCCP, TX_INFO, INFO.size))
    except (OSError, struct.error):  # CCID 2 has no rate, and CCID 3 no such field
        return MODES[0]
    if not info[INFO_FEEDBACK]:
        return MODES[0]
    return next((m for m in MODES if m <= info[INFO_PACKET]), MODES[-1])


def call(host, port, seconds):
    for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        s = dccp_socket(family)
        try:
            s.connect(address)
            break
        except OSError as error:
            s.close()
            failed = error
    else:
        sys.exit(f"call.py: {host}: {failed}")
    ccid = s.getsockopt(SOL_DCCP, TX_CCID)
    sent = unsent = 0
    begin = time.monotonic()
    for n in range(round(seconds / FRAME)):
        try:
            sent += s.send(n.to_bytes(4, "big") + bytes(choose(s) - 4)) > 0
        except BlockingIOError:  # no room: an old frame is of no use later
            unsent += 1
        time.sleep(max(0, begin + (n + 1) * FRAME - time.monotonic()))
    print(f"CCID {ccid}: sent {sent} frames, {unsent} had no room")
    s.close()


def answer(port):
    """Takes one caller after the other."""
    listener = dccp_socket(socket.AF_INET6)
    listener.bind(("::", port))
    listener.listen(5)
    while True:
        peer, _ = listener.accept()
        peer.settimeout(5)  # without a frame: it has gone without a goodbye
        got = size = last = 0
        try:
            while frame := peer.recv(2048):
                last = max(last, int.from_bytes(frame[:4], "big"))
                got += 1
                size += len(frame)
        except OSError:
            pass
        print(f"got {got} of {last + 1 if got else 0} frames, {size} bytes", flush=True)
        peer.close()


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "listen":
        answer(int(sys.argv[2]))
    elif len(sys.argv) in (3, 4):
        call(sys.argv[1], int(sys.argv[2]), float((*sys.argv, 10)[3]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
