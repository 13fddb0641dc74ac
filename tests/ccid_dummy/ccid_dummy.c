// SPDX-License-Identifier: GPL-2.0
/*
 * CCIDs for tests of their registration: no congestion control at all, but
 * everything a CCID can ask of net/dccp.
 *
 * Each number in `ids` is registered; loading fails if none can be. Parameters
 * that may change at any time: `fail` has initialisation fail at one end,
 * `ecn` has data sent with ECT(0) if the peer reads it.
 */

#include <linux/module.h>
#include <net/inet_ecn.h>
#include "ccid.h"
#include "dccp.h"
#include "feat.h"

#define CCID_DUMMY_MAX 8

static u8 ids[CCID_DUMMY_MAX] = { 77 };
static int nr_ids = 1;
module_param_array(ids, byte, &nr_ids, 0444);
MODULE_PARM_DESC(ids, "numbers to register");

static int fail;
module_param(fail, int, 0644);
MODULE_PARM_DESC(fail, "refuse half-connections of clients (2) or servers (3)");

static bool ecn;
module_param(ecn, bool, 0644);
MODULE_PARM_DESC(ecn, "send with ECT(0)");

/* What getsockopt() tells of either half. */
struct ccid_dummy {
	u32	packets;	/* data packets */
	u32	ect0;		/* of these, received with ECT(0) */
	u32	ce;		/* or with CE */
	u32	value;		/* as set by setsockopt() */
};

/* As CCID-3 has it, but for ECN. */
static const struct ccid_dependency ccid_dummy_rx_deps[] = {
	{ DCCPF_SEND_ACK_VECTOR, true,  false, 0 },
	{ DCCPF_SEND_LEV_RATE,   true,  true,  1 },
	{ DCCPF_SEND_NDP_COUNT,  false, true,  1 },
	{ DCCPF_ECN_INCAPABLE,   true,  false, 0 },
	{ 0 }
};

static const struct ccid_dependency ccid_dummy_tx_deps[] = {
	{ DCCPF_SEND_ACK_VECTOR, false, false, 0 },
	{ DCCPF_SEND_LEV_RATE,   false, true,  1 },
	{ DCCPF_ACK_RATIO,       true,  false, 0 },
	{ DCCPF_SEND_NDP_COUNT,  true,  false, 1 },
	{ 0 }
};

static struct ccid_dummy *ccid_dummy_rx(const struct sock *sk)
{
	return ccid_priv(dccp_sk(sk)->dccps_hc_rx_ccid);
}

static struct ccid_dummy *ccid_dummy_tx(const struct sock *sk)
{
	return ccid_priv(dccp_sk(sk)->dccps_hc_tx_ccid);
}

static int ccid_dummy_init(struct ccid *ccid, struct sock *sk)
{
	return fail == dccp_sk(sk)->dccps_role ? -ENOMEM : 0;
}

static int ccid_dummy_send_packet(struct sock *sk, struct sk_buff *skb)
{
	/* Not in init: the IPv6 part of a new child is its listener's. */
	if (ecn && dccp_sk(sk)->dccps_peer_ecn)
		INET_ECN_xmit(sk);
	return CCID_PACKET_SEND_AT_ONCE;
}

static void ccid_dummy_packet_sent(struct sock *sk, unsigned int len)
{
	ccid_dummy_tx(sk)->packets++;
}

static void ccid_dummy_packet_recv(struct sock *sk, struct sk_buff *skb)
{
	struct ccid_dummy *rx = ccid_dummy_rx(sk);
	u8 field;

	if (!dccp_data_packet(skb))
		return;
	if (skb->protocol == htons(ETH_P_IPV6))
		field = ipv6_get_dsfield(ipv6_hdr(skb));
	else
		field = ipv4_get_dsfield(ip_hdr(skb));
	rx->packets++;
	rx->ect0 += (field & INET_ECN_MASK) == INET_ECN_ECT_0;
	rx->ce += INET_ECN_is_ce(field);
}

static int ccid_dummy_getsockopt(const struct ccid_dummy *hc, int len,
				 u32 __user *optval, int __user *optlen)
{
	if (len < sizeof(*hc))
		return -EINVAL;
	len = sizeof(*hc);
	if (put_user(len, optlen) || copy_to_user(optval, hc, len))
		return -EFAULT;
	return 0;
}

static int ccid_dummy_rx_getsockopt(struct sock *sk, const int optname, int len,
				    u32 __user *optval, int __user *optlen)
{
	return ccid_dummy_getsockopt(ccid_dummy_rx(sk), len, optval, optlen);
}

static int ccid_dummy_tx_getsockopt(struct sock *sk, const int optname, int len,
				    u32 __user *optval, int __user *optlen)
{
	return ccid_dummy_getsockopt(ccid_dummy_tx(sk), len, optval, optlen);
}

static int ccid_dummy_rx_setsockopt(struct sock *sk, int optname, u32 val,
				    bool admin)
{
	ccid_dummy_rx(sk)->value = val;
	return 0;
}

static int ccid_dummy_tx_setsockopt(struct sock *sk, int optname, u32 val,
				    bool admin)
{
	ccid_dummy_tx(sk)->value = val;
	return 0;
}

static const struct ccid_operations ccid_dummy_ops = {
	.ccid_name		= "dummy",
	.owner			= THIS_MODULE,
	.ccid_deps		= { ccid_dummy_rx_deps, ccid_dummy_tx_deps },
	.ccid_hc_rx_obj_size	= sizeof(struct ccid_dummy),
	.ccid_hc_tx_obj_size	= sizeof(struct ccid_dummy),
	.ccid_hc_rx_init	= ccid_dummy_init,
	.ccid_hc_tx_init	= ccid_dummy_init,
	.ccid_hc_tx_send_packet	= ccid_dummy_send_packet,
	.ccid_hc_tx_packet_sent	= ccid_dummy_packet_sent,
	.ccid_hc_rx_packet_recv	= ccid_dummy_packet_recv,
	.ccid_hc_rx_getsockopt	= ccid_dummy_rx_getsockopt,
	.ccid_hc_tx_getsockopt	= ccid_dummy_tx_getsockopt,
	.ccid_hc_rx_setsockopt	= ccid_dummy_rx_setsockopt,
	.ccid_hc_tx_setsockopt	= ccid_dummy_tx_setsockopt,
};

static struct ccid_operations ccid_dummies[CCID_DUMMY_MAX];

static int __init ccid_dummy_module_init(void)
{
	int i, err = 0;
	bool any = false;

	for (i = 0; i < nr_ids; i++) {
		ccid_dummies[i] = ccid_dummy_ops;
		ccid_dummies[i].ccid_id = ids[i];
		err = ccid_register(&ccid_dummies[i]);
		any |= !err;
	}
	return any ? 0 : err;
}
module_init(ccid_dummy_module_init);

static void __exit ccid_dummy_module_exit(void)
{
	int i;

	for (i = 0; i < nr_ids; i++)
		ccid_unregister(&ccid_dummies[i]);
}
module_exit(ccid_dummy_module_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("CCIDs without congestion control, for tests");
MODULE_ALIAS("net-dccp-ccid-77");
