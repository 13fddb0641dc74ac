// SPDX-License-Identifier: GPL-2.0
/*
 * Let an allocation fail while abe splits a GSO packet, on a kernel without fault
 * injection: the nth within one abe_admit_gso(). sch_abe has to be loaded.
 *
 * 6.1 asks should_failslab() before each allocation, whether it is configured to
 * let any fail or not; 6.12 does not. One CPU at a time may split while this is armed.
 */

#include <linux/kprobes.h>
#include <linux/module.h>

static unsigned int nth;
module_param(nth, uint, 0644);
MODULE_PARM_DESC(nth, "which allocation of each split fails, from 1 on; 0: none");

static unsigned int failed;
module_param(failed, uint, 0644);
MODULE_PARM_DESC(failed, "how many have failed");

static bool splitting;
static unsigned int count;

static int split_begins(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	splitting = true;
	count = 0;
	return 0;
}

static int split_ends(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	splitting = false;
	return 0;
}

static struct kretprobe split = {
	.kp.symbol_name = "abe_admit_gso",
	.entry_handler = split_begins,
	.handler = split_ends,
};

/* Stands in for should_failslab() when that is to say no. */
static noinline int refuse(void)
{
	return -ENOMEM;
}

static int allocates(struct kprobe *p, struct pt_regs *regs)
{
	if (!splitting || !nth || ++count != nth)
		return 0;
	failed++;
	regs->ip = (unsigned long)refuse;
	return 1;
}

static struct kprobe allocation = {
	.symbol_name = "should_failslab",
	.pre_handler = allocates,
};

static int __init fail_split_init(void)
{
	int err = register_kretprobe(&split);

	if (err)
		return err;
	err = register_kprobe(&allocation);
	if (err)
		unregister_kretprobe(&split);
	return err;
}

static void __exit fail_split_exit(void)
{
	unregister_kprobe(&allocation);
	unregister_kretprobe(&split);
}

module_init(fail_split_init);
module_exit(fail_split_exit);
MODULE_DESCRIPTION("Failing allocations where sch_abe splits GSO packets, for tests");
MODULE_LICENSE("GPL");
