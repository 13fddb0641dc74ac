// SPDX-License-Identifier: GPL-2.0
/*
 * Bugs on purpose, one for each thing that a debug kernel is there to find:
 * loaded with bug=NAME, the kernel must complain. A lane that lets one of
 * them pass proves nothing.
 */

#include <linux/bottom_half.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

static char *bug = "none";
module_param(bug, charp, 0444);
MODULE_PARM_DESC(bug, "none, use, bounds, leak, locks, sleep, shift, timer, race");

/* Not constants, or the compiler would see what is coming. */
static int far = 40;
module_param(far, int, 0444);

static DEFINE_SPINLOCK(lock_a);
static DEFINE_SPINLOCK(lock_b);

struct thing {
	struct timer_list timer;
	u32 values[8];
};

static void *lost;
static u32 shared;

static int plant_use(void)
{
	struct thing *t = kzalloc(sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	kfree(t);
	return READ_ONCE(t->values[1]) == 1 ? 1 : 0;
}

static int plant_bounds(void)
{
	struct thing *t = kzalloc(sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	WRITE_ONCE(((u8 *)t)[sizeof(*t) + far / 40], 1);
	kfree(t);
	return 0;
}

static int plant_leak(void)
{
	int i;

	/* A pointer to the last one may stay in a register or on the stack. */
	for (i = 0; i < 8; i++)
		lost = kzalloc(1000, GFP_KERNEL);
	lost = NULL;
	return 0;
}

static int plant_locks(void)
{
	spin_lock_bh(&lock_a);
	spin_lock(&lock_b);
	spin_unlock(&lock_b);
	spin_unlock_bh(&lock_a);

	spin_lock_bh(&lock_b);
	spin_lock(&lock_a);
	spin_unlock(&lock_a);
	spin_unlock_bh(&lock_b);
	return 0;
}

static int plant_sleep(void)
{
	spin_lock_bh(&lock_a);
	msleep(20);
	spin_unlock_bh(&lock_a);
	return 0;
}

static int plant_shift(void)
{
	return far && (1U << far) == 7 ? 1 : 0;
}

static void timer_fires(struct timer_list *timer)
{
}

static int plant_timer(void)
{
	struct thing *t = kzalloc(sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	timer_setup(&t->timer, timer_fires, 0);
	mod_timer(&t->timer, jiffies + 10 * HZ);
	kfree(t);
	return 0;
}

static int racer(void *unused)
{
	while (!kthread_should_stop()) {
		shared++;
		cond_resched();
	}
	return 0;
}

static int plant_race(void)
{
	struct task_struct *task[2];
	int i;

	for (i = 0; i < 2; i++)
		task[i] = kthread_run(racer, NULL, "racer%d", i);
	msleep(5000);
	for (i = 0; i < 2; i++)
		if (!IS_ERR(task[i]))
			kthread_stop(task[i]);
	return 0;
}

static const struct {
	const char *name;
	int (*plant)(void);
} bugs[] = {
	{ "use", plant_use },
	{ "bounds", plant_bounds },
	{ "leak", plant_leak },
	{ "locks", plant_locks },
	{ "sleep", plant_sleep },
	{ "shift", plant_shift },
	{ "timer", plant_timer },
	{ "race", plant_race },
};

static int __init planted_init(void)
{
	int i, err;

	if (!strcmp(bug, "none"))
		return 0;
	for (i = 0; i < ARRAY_SIZE(bugs); i++) {
		if (strcmp(bug, bugs[i].name))
			continue;
		err = bugs[i].plant();
		return err < 0 ? err : 0;
	}
	return -EINVAL;
}

static void __exit planted_exit(void)
{
}

module_init(planted_init)
module_exit(planted_exit)
MODULE_DESCRIPTION("Bugs on purpose");
MODULE_LICENSE("GPL");
