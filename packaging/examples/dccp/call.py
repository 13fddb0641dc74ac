#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A call over DCCP, in Python: sends a frame of speech each 20 ms, with as many bytes as the
congestion control has room for.

  call.py listen 5004            prints what each caller's frames came to
  call.py HOST 5004 [SECONDS]    calls

call.c does the same, and each can talk to the other.
"""

import ctypes
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
INFO_PACKET, INFO_FEEDBACK = 9, 21
INTERVAL_AT = 52  # bytes before `interval`

libc = ctypes.CDLL(None)


def dccp_socket(family):
    """A socket with the best list of CCIDs that this kernel knows; OSError if it has no DCCP."""
    s = socket.socket(family, SOCK_DCCP, IPPROTO_DCCP)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(SOL_DCCP, SERVICE, b"RTPA")  # RTP audio (RFC 5762)
    try:
        s.setsockopt(SOL_DCCP, CCID, bytes([4, 3, 2]))
    except OSError:
        s.setsockopt(SOL_DCCP, CCID, bytes([3, 2]))
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, EF)
    # An IPv6 socket may have a peer with an IPv4 address.
    s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, EF)
    return s


def choose(s):
    """The largest mode that fits into what may be sent each 20 ms.

    The kernel reads the time between frames from the buffer, which socket.getsockopt() would
    hand to it as it is: so this is libc's.
    """
    buffer = ctypes.create_string_buffer(INFO.size)
    struct.pack_into("=I", buffer, INTERVAL_AT, round(FRAME * 1e6))
    size = ctypes.c_uint32(INFO.size)
    failed = libc.getsockopt(s.fileno(), SOL_DCCP, TX_INFO, buffer, ctypes.byref(size))
    if failed or size.value < INFO.size:  # CCID 2 has no rate, and CCID 3 no such field
        return MODES[0]
    info = INFO.unpack(buffer)
    if not info[INFO_FEEDBACK]:
        return MODES[0]
    return next((m for m in MODES if m <= info[INFO_PACKET]), MODES[-1])


def call(host, port, seconds):
    failed = None
    for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        s = None
        try:
            s = dccp_socket(family)
            s.connect(address)
            break
        except OSError as error:  # without DCCP a real program would go on with UDP
            failed = error
            if s:
                s.close()
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
    try:
        host, port, *rest = sys.argv[1:]
        port, (seconds,) = int(port), [float(word) for word in rest] or [10]
    except ValueError:
        sys.exit(__doc__)
    if host == "listen":
        answer(port)
    else:
        call(host, port, seconds)


if __name__ == "__main__":
    main()
