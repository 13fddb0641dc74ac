// SPDX-License-Identifier: GPL-2.0
/*
 * Cost of a qdisc per packet: enqueue plus dequeue.
 *
 * Takes the root qdisc that tc has configured on an idle device, holds its
 * lock, and enqueues and dequeues batches of 64 recycled packets on top of a
 * standing backlog. In a VM in which a nanosecond is an instruction the
 * result is the number of instructions. The result is read from the
 * parameter "result": median and largest batch, losses and marks. A mark costs
 * as much as a packet, so that costs compare where marks are as many.
 */

#include <linux/ip.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/sort.h>
#include <linux/udp.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#define BATCH	64

static char *dev = "bench0";
module_param(dev, charp, 0444);
MODULE_PARM_DESC(dev, "device with the qdisc");

static int backlog;
module_param(backlog, int, 0444);
MODULE_PARM_DESC(backlog, "packets queued all the time");

static int green;
module_param(green, int, 0444);
MODULE_PARM_DESC(green, "green packets of each 64, DSCP 46");

static int size = 512;
module_param(size, int, 0444);
MODULE_PARM_DESC(size, "length of a packet, bytes");

static int rounds = 500;
module_param(rounds, int, 0444);
MODULE_PARM_DESC(rounds, "batches timed");

static char result[128];
module_param_string(result, result, sizeof(result), 0444);
MODULE_PARM_DESC(result, "median and largest ns a packet, packets lost, packets marked");

static struct sk_buff *bench_packet(struct net_device *ndev, int n)
{
	struct sk_buff *skb = alloc_skb(size + 128, GFP_ATOMIC);
	struct udphdr *udp;
	struct iphdr *ip;

	if (!skb)
		return NULL;
	skb_reserve(skb, 128);
	skb_reset_network_header(skb);
	ip = skb_put_zero(skb, size - ETH_HLEN);
	skb_set_transport_header(skb, sizeof(*ip));
	udp = udp_hdr(skb);
	ip->version = 4;
	ip->ihl = 5;
	ip->tot_len = htons(size - ETH_HLEN);
	ip->ttl = 64;
	ip->protocol = IPPROTO_UDP;
	ip->saddr = htonl(0x0a000001);
	ip->daddr = htonl(0x0a000002);
	/* Spread the green ones evenly; ECT(0), so that AQMs mark. */
	ip->tos = INET_ECN_ECT_0;
	if ((n % BATCH + 1) * green / BATCH != n % BATCH * green / BATCH)
		ip->tos |= 46 << 2;
	udp->source = htons(1024 + n % BATCH);
	udp->dest = htons(9);
	ip_send_check(ip);
	eth_header(skb, ndev, ETH_P_IP, ndev->dev_addr, ndev->dev_addr,
		   skb->len);
	skb_reset_mac_header(skb);
	skb->protocol = htons(ETH_P_IP);
	skb->dev = ndev;
	qdisc_skb_cb(skb)->pkt_len = skb->len;
	return skb;
}

/* How many of a batch that was enqueued just now were marked. */
static int bench_marked(struct sk_buff **skbs)
{
	int i, marks = 0;

	for (i = 0; i < BATCH; i++)
		marks += INET_ECN_is_ce(ip_hdr(skbs[i])->tos);
	return marks;
}

/* A packet as it was before it was marked. */
static void bench_unmark(struct sk_buff *skb)
{
	struct iphdr *ip = ip_hdr(skb);

	ip->tos = (ip->tos & ~INET_ECN_MASK) | INET_ECN_ECT_0;
	ip_send_check(ip);
}

static int bench_compare(const void *a, const void *b)
{
	const u32 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/*
 * Enqueue and dequeue a batch; those lost come back through @to_free. Adds to
 * *@marks, and tells the ns in *@time. Return: packets that were dequeued.
 */
static int bench_batch(struct Qdisc *q, struct sk_buff **skbs,
		       struct sk_buff **to_free, int *marks, u32 *time)
{
	u32 queued = q->q.qlen;
	u64 start = ktime_get_ns();
	int i, n = 0;

	for (i = 0; i < BATCH; i++)
		q->enqueue(skbs[i], q, to_free);
	*time = ktime_get_ns() - start;
	if (q->q.qlen == queued + BATCH)	/* else some have been freed */
		*marks += bench_marked(skbs);
	start = ktime_get_ns();
	for (i = 0; i < BATCH; i++) {
		skbs[n] = q->dequeue(q);
		n += !!skbs[n];
	}
	*time += ktime_get_ns() - start;
	return n;
}

static int bench_run(struct net_device *ndev, struct Qdisc *q,
		     struct sk_buff **skbs, u32 *times)
{
	struct sk_buff *lost = NULL, *next, *skb;
	int i, n, round, losses = 0, marks = 0;

	for (i = 0; i < backlog; i++) {
		skb = bench_packet(ndev, i);
		if (!skb)
			return -ENOMEM;
		q->enqueue(skb, q, &lost);
	}
	for (round = 0; round < rounds; round++) {
		n = bench_batch(q, skbs, &lost, &marks, &times[round]);
		for (skb = lost; skb; skb = next) {
			next = skb->next;
			kfree_skb(skb);
			losses++;
		}
		lost = NULL;
		for (i = 0; i < n; i++)
			bench_unmark(skbs[i]);
		for (; n < BATCH; n++) {
			skbs[n] = bench_packet(ndev, n);
			if (!skbs[n])
				return -ENOMEM;
		}
	}
	sort(times, rounds, sizeof(*times), bench_compare, NULL);
	snprintf(result, sizeof(result), "%u %u %d %d", times[rounds / 2] / BATCH,
		 times[rounds - 1] / BATCH, losses, marks);
	return 0;
}

static int __init bench_init(void)
{
	struct sk_buff *skbs[BATCH] = {};
	struct net_device *ndev;
	struct Qdisc *q;
	u32 *times;
	int i, err = -ENOMEM;

	if (rounds < 1 || size < 64 || size > 9000)
		return -EINVAL;
	ndev = dev_get_by_name(&init_net, dev);
	if (!ndev)
		return -ENODEV;
	times = kcalloc(rounds, sizeof(*times), GFP_KERNEL);
	for (i = 0; i < BATCH; i++)
		skbs[i] = bench_packet(ndev, i);
	if (times && skbs[BATCH - 1]) {
		q = rcu_dereference_raw(netdev_get_tx_queue(ndev, 0)->qdisc);
		/* The device is down or idle: only bottom halves need be off. */
		local_bh_disable();
		err = bench_run(ndev, q, skbs, times);
		local_bh_enable();
	}
	for (i = 0; i < BATCH; i++)
		kfree_skb(skbs[i]);
	kfree(times);
	dev_put(ndev);
	return err;
}

static void __exit bench_exit(void)
{
}

module_init(bench_init)
module_exit(bench_exit)
MODULE_DESCRIPTION("Cost of a qdisc per packet");
MODULE_LICENSE("GPL");
