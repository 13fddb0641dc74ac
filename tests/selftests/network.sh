#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the VM, for tests/host/vm: a small network with some of everything
# that the tests build on. All its output must be the same for the same seed.
set -e
modprobe -a sch_red sch_tbf sch_netem sch_fq_codel sch_htb cls_flower act_mirred ifb
for ns in a b; do
	ip netns add $ns
	ip -n $ns link set lo up
done
ip link add va netns a type veth peer name vb netns b
ip -n a addr add 10.0.0.1/24 dev va
ip -n b addr add 10.0.0.2/24 dev vb
ip -n a link set va up
ip -n b link set vb up
tc -n a qdisc add dev va root handle 1: tbf rate 2mbit burst 3000 limit 30000
tc -n b qdisc add dev vb root netem delay 20ms 2ms loss 1%
ip netns exec a ping -i 0.2 -c 5 10.0.0.2
ip netns exec b iperf3 -s -1 >/dev/null &
sleep 0.5
ip netns exec a iperf3 -c 10.0.0.2 -t "${1-5}"
wait
tc -n a -s -j qdisc show dev va
echo
ip netns exec a ss -tin
python3 - <<'END'
import os, random, socket, struct, time
print(os.urandom(8).hex(), random.random(), hash("text"), time.time_ns())
a = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
a.bind(("::1", 0))
a.sendto(struct.pack("!d", time.monotonic()), a.getsockname())
print(struct.unpack("!d", a.recv(8)), os.listdir("/sys/class/net"))
END
