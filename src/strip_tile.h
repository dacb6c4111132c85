/* strip.c includes this file once for each kind of vector (kinds.h). */

/* Multiplies a term by a factor: adds its exponent at r2 to a, and multiplies `times` by its polynomial. */
TARGET INSIDE void NAME(take)(const struct closed_form *form, VECTOR r2, VECTOR *a,
                              VECTOR *times)
{
    VECTOR b = form->c * r2;
    if (!form->squared) {
        b = ROOT(b);
        *times *= 1.0 + b * (form->p1 + b * form->p2);
    }
    *a += b;
}

/* Computes k_r[m] = k(z_m, x_r), r = 0, ..., 3.  For each input of the factors z has M values, a multiple of the
 * lanes, and x has four values. */
TARGET static void NAME(values)(const struct strip_kernel *k, int M,
                                const double *const *z, const double *x, double *k0,
                                double *k1, double *k2, double *k3)
{
    for (int m = 0; m < M; m += LANES_OF(VECTOR)) {
        const struct strip_factor *f = k->factor;
        VECTOR s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
        for (int t = 0, j = 0; t < k->n_terms; t++) {
            VECTOR a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};
            VECTOR t0 = a0 + k->term[t].variance, t1 = t0, t2 = t0, t3 = t0;
            for (int i = 0; i < k->term[t].n_factors; i++, f++) {
                VECTOR r0 = {0}, r1 = {0}, r2 = {0}, r3 = {0};
                for (const int end = j + f->d; j < end; j++) {
                    const VECTOR zj = *(const VECTOR *)(z[j] + m);
                    const double rate = k->rate[j], *xj = x + STRIP_ROWS * j;
                    VECTOR u0 = (xj[0] - zj) * rate, u1 = (xj[1] - zj) * rate,
                           u2 = (xj[2] - zj) * rate, u3 = (xj[3] - zj) * rate;
                    if (rate < 0.0) {
                        u0 = NAME(levels)(u0, rate);
                        u1 = NAME(levels)(u1, rate);
                        u2 = NAME(levels)(u2, rate);
                        u3 = NAME(levels)(u3, rate);
                    }
                    r0 += u0 * u0;
                    r1 += u1 * u1;
                    r2 += u2 * u2;
                    r3 += u3 * u3;
                }
                NAME(take)(f->form, r0, &a0, &t0);
                NAME(take)(f->form, r1, &a1, &t1);
                NAME(take)(f->form, r2, &a2, &t2);
                NAME(take)(f->form, r3, &a3, &t3);
            }
            s0 += NAME(value)(a0, t0);
            s1 += NAME(value)(a1, t1);
            s2 += NAME(value)(a2, t2);
            s3 += NAME(value)(a3, t3);
        }
        *(VECTOR *)(k0 + m) = s0;
        *(VECTOR *)(k1 + m) = s1;
        *(VECTOR *)(k2 + m) = s2;
        *(VECTOR *)(k3 + m) = s3;
    }
}

/* Computes sums[r] = k_r'p, r = 0, ..., 3.  M is a multiple of the lanes. */
TARGET static void NAME(sums)(int M, const double *const *k, const double *p,
                              double *sums)
{
    const double *k0 = k[0], *k1 = k[1], *k2 = k[2], *k3 = k[3];
    VECTOR s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (int m = 0; m < M; m += LANES_OF(VECTOR)) {
        const VECTOR pm = *(const VECTOR *)(p + m);
        s0 += *(const VECTOR *)(k0 + m) * pm;
        s1 += *(const VECTOR *)(k1 + m) * pm;
        s2 += *(const VECTOR *)(k2 + m) * pm;
        s3 += *(const VECTOR *)(k3 + m) * pm;
    }
    const VECTOR s[STRIP_ROWS] = {s0, s1, s2, s3};
    const double *lane = (const double *)s;
    for (int r = 0; r < STRIP_ROWS; r++, lane += LANES_OF(VECTOR)) {
        sums[r] = 0.0;
        for (int l = 0; l < LANES_OF(VECTOR); l++)
            sums[r] += lane[l];
    }
}

/* Computes out += sum_r k_r x_r.  M is a multiple of the lanes. */
TARGET static void NAME(spread)(int M, const double *const *k, const double *x,
                                double *out)
{
    const double *k0 = k[0], *k1 = k[1], *k2 = k[2], *k3 = k[3];
    const double x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    for (int m = 0; m < M; m += LANES_OF(VECTOR))
        *(VECTOR *)(out + m) +=
            (*(const VECTOR *)(k0 + m) * x0 + *(const VECTOR *)(k1 + m) * x1) +
            (*(const VECTOR *)(k2 + m) * x2 + *(const VECTOR *)(k3 + m) * x3);
}

/* Computes out = times exp(-exponent), or 0 if exp(-exponent) is denormal.  n is a multiple of the lanes. */
TARGET static void NAME(finish)(int n, const double *exponent, const double *times,
                                double *out)
{
    for (int i = 0; i < n; i += LANES_OF(VECTOR))
        *(VECTOR *)(out + i) =
            NAME(value)(*(const VECTOR *)(exponent + i), *(const VECTOR *)(times + i));
}
