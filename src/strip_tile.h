/* strip.c includes this file once for each kind of vector (kinds.h). */

/* Multiplies times * exp(-a) by a factor: adds its exponent at r2 to a, and multiplies `times` by its polynomial. */
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

/* Computes K[r][m] = k(z_m, x_r), r = 0, ..., 3.  For input j of the factors, z[j] has M values (a multiple of the
 * lanes), and x + STRIP_ROWS j has four values. */
TARGET static void NAME(values)(const struct strip_kernel *k, int M,
                                const double *const *z, const double *x, double *const *K)
{
    for (int m = 0; m < M; m += LANES_OF(VECTOR)) {
        const struct strip_factor *f = k->factor;
        VECTOR sum[STRIP_ROWS], a[STRIP_ROWS], times[STRIP_ROWS], r2[STRIP_ROWS],
            u[STRIP_ROWS];
        EACH (r, STRIP_ROWS)
            sum[r] = (VECTOR){0};
        for (int t = 0, j = 0; t < k->n_terms; t++) {
            EACH (r, STRIP_ROWS) {
                a[r] = (VECTOR){0};
                times[r] = a[r] + k->term[t].variance;
            }
            for (int i = 0; i < k->term[t].n_factors; i++, f++) {
                EACH (r, STRIP_ROWS)
                    r2[r] = (VECTOR){0};
                for (const int end = j + f->d; j < end; j++) {
                    const VECTOR zj = *(const VECTOR *)(z[j] + m);
                    const double rate = k->rate[j], *xj = x + STRIP_ROWS * j;
                    EACH (r, STRIP_ROWS)
                        u[r] = (xj[r] - zj) * rate;
                    if (rate < 0.0)
                        EACH (r, STRIP_ROWS)
                            u[r] = NAME(levels)(u[r], rate);
                    EACH (r, STRIP_ROWS)
                        r2[r] += u[r] * u[r];
                }
                EACH (r, STRIP_ROWS)
                    NAME(take)(f->form, r2[r], a + r, times + r);
            }
            EACH (r, STRIP_ROWS)
                sum[r] += NAME(value)(a[r], times[r]);
        }
        EACH (r, STRIP_ROWS)
            *(VECTOR *)(K[r] + m) = sum[r];
    }
}

/* Computes sums[r] = k_r'p, r = 0, ..., 3.  M is a multiple of the lanes. */
TARGET static void NAME(sums)(int M, const double *const *k, const double *p,
                              double *sums)
{
    VECTOR s[STRIP_ROWS];
    EACH (r, STRIP_ROWS)
        s[r] = (VECTOR){0};
    for (int m = 0; m < M; m += LANES_OF(VECTOR))
        EACH (r, STRIP_ROWS)
            s[r] += *(const VECTOR *)(k[r] + m) * *(const VECTOR *)(p + m);
    EACH (r, STRIP_ROWS)
        sums[r] = NAME(total)(s[r]);
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

/* Computes out = times * exp(-exponent), or 0 if exponent >= 708. n is a multiple of the lanes. */
TARGET static void NAME(finish)(int n, const double *exponent, const double *times,
                                double *out)
{
    for (int i = 0; i < n; i += LANES_OF(VECTOR))
        *(VECTOR *)(out + i) =
            NAME(value)(*(const VECTOR *)(exponent + i), *(const VECTOR *)(times + i));
}
