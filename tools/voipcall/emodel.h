/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The E-model (ITU-T G.107) with default values of all that a network does not
 * change, in the simplification of Cole and Rosenbluth for the delay.
 */
#ifndef VOIPCALL_EMODEL_H
#define VOIPCALL_EMODEL_H

/**
 * emodel_r - the rating factor R
 * @delay_ms:	mouth to ear
 * @ie:		equipment impairment factor of the codec
 * @bpl:	its packet-loss robustness factor
 * @loss:	lost packets of all, 0 to 1
 * @burst_ratio: mean length of the bursts of losses, relative to random loss
 *
 * R = 93.2 - Id - Ie_eff, 0 at least, where
 * Id = 0.024 d + 0.11 (d - 177.3) [d > 177.3],
 * Ie_eff = Ie + (95 - Ie) Ppl / (Ppl / BurstR + Bpl), Ppl in percent.
 */
static inline double emodel_r(double delay_ms, double ie, double bpl, double loss,
			      double burst_ratio)
{
	double ppl = 100 * loss;
	double id = 0.024 * delay_ms, r;

	if (delay_ms > 177.3)
		id += 0.11 * (delay_ms - 177.3);
	r = 93.2 - id - ie - (95 - ie) * ppl / (ppl / burst_ratio + bpl);
	return r < 0 ? 0 : r;		/* not a number stays so */
}

/* Mean opinion score, 1 to 4.5, from R. */
static inline double emodel_mos(double r)
{
	double mos = 1 + 0.035 * r + 7e-6 * r * (r - 60) * (100 - r);

	if (r <= 0 || mos < 1)
		return 1;
	return r >= 100 || mos > 4.5 ? 4.5 : mos;
}

#endif /* VOIPCALL_EMODEL_H */
