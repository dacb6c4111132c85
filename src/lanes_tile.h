/* lanes.c includes this file once for each kind of vector (kinds.h). lanes.h describes the functions. */

#define VECTORS(x)       ((VECTOR *)(x))
#define CONST_VECTORS(x) ((const VECTOR *)(x))

TARGET INSIDE VECTOR NAME(dot)(int n, const VECTOR *x, const VECTOR *y)
{
    VECTOR even = {0}, odd = {0};
    int k = 0;
    for (; k + 2 <= n; k += 2) {
        even += x[k] * y[k];
        odd += x[k + 1] * y[k + 1];
    }
    if (k < n)
        even += x[k] * y[k];
    return even + odd;
}

TARGET INSIDE void NAME(dots)(int n, const VECTOR *x, const VECTOR *const *y, VECTOR *to)
{
    VECTOR sums[4];
    EACH (j, 4)
        sums[j] = (VECTOR){0};
    for (int k = 0; k < n; k++)
        EACH (j, 4)
            sums[j] += x[k] * y[j][k];
    EACH (j, 4)
        to[j] = sums[j];
}

/* Computes the dot products of four x with four y, so that each loaded value is used four times. */
TARGET INSIDE void NAME(tile)(int n, const VECTOR *const *x, const VECTOR *const *y,
                              VECTOR *to)
{
    VECTOR sums[16];
    EACH (i, 16)
        sums[i] = (VECTOR){0};
    for (int k = 0; k < n; k++)
        EACH (i, 16)
            sums[i] += x[i / 4][k] * y[i % 4][k];
    EACH (i, 16)
        to[i] = sums[i];
}

/* For a factor g = times exp(-a) in closed form, computes a, `times`, and slope with dg / d r2 = -slope exp(-a) / 2. */
TARGET INSIDE void NAME(split)(const struct closed_form *form, VECTOR r2, VECTOR *a,
                               VECTOR *times, VECTOR *slope)
{
    const VECTOR none = {0};
    *a = form->c * r2;
    *times = none + 1.0;
    *slope = none + 2.0 * form->c;
    if (form->squared)
        return;
    *a = ROOT(*a);
    *times += *a * (form->p1 + *a * form->p2);
    *slope = form->c * (form->p1 - 2.0 * form->p2 + form->p2 * *a);
    if (form->p1 != 1.0) /* this term is infinite at a = 0, and is set to 0 there */
        *slope += UNLESS(form->c * (1.0 - form->p1) / *a, 0.0, *a);
}

TARGET static void NAME(values)(const struct strip_kernel *k, int n, const double *X,
                                double *T, double *K, double *S)
{
    const int n_factors = k->term->n_factors;
    const size_t size = triangle_size(n);
    const VECTOR *x = CONST_VECTORS(X), none = {0}, variance = none + k->term->variance;
    LINED VECTOR times[STRIP_MOST_FACTORS], slope[STRIP_MOST_FACTORS];
    size_t i = 0;
    for (int a = 0; a < n; a++, i++) {
        for (int b = 0; b < a; b++, i++) {
            VECTOR exponent = none, product = none + 1.0;
            for (int f = 0, j = 0; f < n_factors; f++) {
                VECTOR r2 = none, own;
                for (const int end = j + k->factor[f].d; j < end; j++) {
                    const VECTOR *xj = x + (size_t)k->column[j] * n;
                    VECTOR v = (xj[a] - xj[b]) * k->rate[j];
                    if (k->rate[j] < 0.0)
                        v = NAME(levels)(v, k->rate[j]);
                    r2 += v * v;
                }
                NAME(split)(k->factor[f].form, r2, &own, times + f, slope + f);
                exponent += own;
                product *= times[f];
            }
            const VECTOR e = NAME(value)(exponent, variance),
                         value = UNLESS(e * product, exponent, 708.0);
            VECTORS(T)[i] += value;
            VECTORS(K)[i] = value;
            for (int f = 0; f < n_factors; f++) {
                VECTOR s = e * slope[f];
                for (int g = 0; g < n_factors; g++)
                    if (g != f)
                        s *= times[g];
                VECTORS(S)[f * size + i] = UNLESS(s, exponent, 708.0);
            }
        }
        VECTORS(T)[i] += variance;
        VECTORS(K)[i] = variance;
    }
}

TARGET static void NAME(slope)(int n, double rate, const double *X, const double *S,
                               const double *U, double *to)
{
    const VECTOR *x = CONST_VECTORS(X), *u = CONST_VECTORS(U), *s = CONST_VECTORS(S) + 1;
    VECTOR *out = VECTORS(to);
    for (int a = 1; a < n; s += ++a) {
        const VECTOR xa = x[a], ua = u[a];
        VECTOR sum = {0};
        for (int b = 0; b < a; b++) {
            VECTOR v = (xa - x[b]) * rate, t;
            if (rate < 0.0)
                v = NAME(levels)(v, rate);
            t = s[b] * v * v;
            out[b] += t * ua;
            sum += t * u[b];
        }
        out[a] += sum;
    }
}

TARGET static void NAME(multiply)(int n, const double *K, const double *U, double *to)
{
    const VECTOR *k = CONST_VECTORS(K), *u = CONST_VECTORS(U);
    VECTOR *out = VECTORS(to);
    for (int a = 0; a < n; k += ++a) {
        VECTOR sum = k[a] * u[a];
        for (int b = 0; b < a; b++) {
            out[b] += k[b] * u[a];
            sum += k[b] * u[b];
        }
        out[a] += sum;
    }
}

TARGET static void NAME(chol)(int n, double *T)
{
    for (int j = 0; j < n; j++) {
        const VECTOR *row = CONST_VECTORS(T) + triangle_size(j);
        VECTOR *at[4], sums[4], rate = {0};
        for (int i = j; i < n; i += 4) {
            for (int r = 0; r < 4; r++) /* repeats a row if there are fewer than 4 */
                at[r] = VECTORS(T) + triangle_size(i + r < n ? i + r : n - 1);
            NAME(dots)(j, row, (const VECTOR *const *)at, sums);
            for (int r = 0; r < 4 && i + r < n; r++) {
                at[r][j] -= sums[r];
                if (i + r == j)
                    rate = 1.0 / ROOT(at[r][j]);
                if (i + r > j)
                    at[r][j] *= rate;
            }
        }
        if (j < n - 1)
            VECTORS(T)[triangle_size(j) + j] = rate;
    }
}

TARGET static void NAME(solve)(int n, const double *L, int p, double *Q)
{
    for (int j = 0; j < p; j += 4) {
        const VECTOR *l = CONST_VECTORS(L);
        VECTOR *q[4], sums[4];
        for (int r = 0; r < 4; r++)
            q[r] = VECTORS(Q) + (size_t)n * (j + r < p ? j + r : p - 1);
        for (int i = 0; i < n; l += ++i) {
            NAME(dots)(i, l, (const VECTOR *const *)q, sums);
            for (int r = 0; r < 4 && j + r < p; r++) {
                q[r][i] -= sums[r];
                if (i < n - 1)
                    q[r][i] *= l[i];
            }
        }
    }
}

TARGET static void NAME(kriging)(int n, const double *L, double *U)
{
    const VECTOR *l = CONST_VECTORS(L) + triangle_size(n - 1), none = {0};
    VECTOR *u = VECTORS(U);
    for (int j = 0; j < n - 1; j++)
        u[j] = -l[j];
    u[n - 1] = none + 1.0;
    for (int i = n - 2; i >= 0; i--) {
        l -= i + 1;
        u[i] *= l[i];
        for (int j = 0; j < i; j++)
            u[j] -= l[j] * u[i];
    }
}

TARGET static void NAME(moments)(int n, int p, const double *times, const double *D,
                                 double *Q, double *score, double *information)
{
    const int s = n - 1;
    const VECTOR d = *CONST_VECTORS(D), rate = *CONST_VECTORS(times) / d,
                 *w = CONST_VECTORS(Q) + (size_t)n * p, r = w[s],
                 of_u = 0.5 * rate * (r * r / d - 1.0);
    for (int j = 0; j < p; j++) {
        VECTOR *q = VECTORS(Q) + (size_t)n * j;
        const VECTOR u_q = q[s];
        score[j] += NAME(total)(of_u * u_q + rate * r * NAME(dot)(s, w, q));
        q[s] = u_q / ROOT(2.0 * d);
    }
    if (information == NULL)
        return;
    for (int j = 0; j < p; j += 4)
        for (int l = j; l < p; l += 4) {
            const VECTOR *row[4], *column[4];
            VECTOR sums[16];
            for (int r = 0; r < 4; r++) { /* repeats the last if there are fewer than 4 */
                row[r] = CONST_VECTORS(Q) + (size_t)n * (j + r < p ? j + r : p - 1);
                column[r] = CONST_VECTORS(Q) + (size_t)n * (l + r < p ? l + r : p - 1);
            }
            NAME(tile)(n, row, column, sums);
            for (int a = 0; a < 4 && j + a < p; a++)
                for (int b = 0; b < 4 && l + b < p; b++)
                    if (l + b >= j + a)
                        information[(size_t)(j + a) * p + l + b] +=
                            NAME(total)(rate * sums[4 * a + b]);
        }
}

#undef VECTORS
#undef CONST_VECTORS
