/* Compares strips of kernel values, in vectors of every width, with the definition. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "ctest.h"
#include "strip.h"

enum { INPUTS = 3, COLUMNS = 4 };
static const int column[3 * INPUTS] = {3, 0, 2, 3, 0, 2, 3, 0, 2};
static const double rate[3 * INPUTS] = {0.7, 1.3, 1e-3, 0.7, 1.3, 1e-3, 0.7, 1.3, 1e-3};
/* Kernels: "+" separates terms, a space separates factors.  All factors read the same inputs. */
static const char *const names[] = {"se",       "matern12",    "matern32",
                                    "matern52", "se matern52", "matern32 + matern12 se"};

static struct strip_kernel strip_of(const char *name)
{
    struct strip_kernel k = {0};
    char word[16];
    int read = 0;
    memcpy(k.column, column, sizeof column);
    memcpy(k.rate, rate, sizeof rate);
    for (; sscanf(name, "%15s%n", word, &read) == 1; name += read) {
        if (k.n_terms == 0 || strcmp(word, "+") == 0) {
            const double variance = k.n_terms == 0 ? 1.7 : 0.9;
            k.term[k.n_terms++] = (struct strip_term){variance, 0};
            if (k.n_terms > 1)
                continue;
        }
        k.factor[k.n_factors++] = (struct strip_factor){profile_of(word)->closed, INPUTS};
        k.term[k.n_terms - 1].n_factors++;
        k.d += INPUTS;
    }
    return k;
}

/* Returns the kernel value at a distance by definition. */
static double strip_by_name(const char *name, double distance)
{
    double sum = 0.0, product = 1.7;
    char word[16];
    for (int read = 0; sscanf(name, "%15s%n", word, &read) == 1; name += read) {
        if (strcmp(word, "+") == 0) {
            sum += product;
            product = 0.9;
        } else {
            product *= naive_profile(word, distance);
        }
    }
    return sum + product;
}

static double distance(int M, const double *Z, int m, int n, const double *X, int i)
{
    double r2 = 0.0;
    for (int j = 0; j < INPUTS; j++)
        r2 += pow((X[column[j] * n + i] - Z[column[j] * M + m]) * rate[j], 2);
    return sqrt(r2);
}

/* The tolerance is 80 eps, because an exponent of up to 60 is rounded. */
static void check_values(int lanes, const char *name, int M, int n)
{
    const struct strip_kernel k = strip_of(name);
    double *Z = array_random((size_t)M * COLUMNS, -3.0, 3.0),
           *X = array_random((size_t)n * COLUMNS, -3.0, 3.0), *K = array((size_t)M * n),
           *transposed = array((size_t)M * n);
    for (int j = 0; j < COLUMNS && n > 0; j++) /* a row of X equals a row of Z */
        X[j * n + n - 1] = Z[j * M];
    strip_values(lanes, &k, matrix_rows(M, Z), matrix_rows(n, X), K);
    strip_values(lanes, &k, matrix_rows(n, X), matrix_rows(M, Z), transposed);
    for (int i = 0; i < n; i++)
        for (int m = 0; m < M; m++) {
            const double want = strip_by_name(name, distance(M, Z, m, n, X, i));
            CHECK(fabs(K[i * M + m] / want - 1.0) <= 80 * 0x1p-52);
            CHECK(K[i * M + m] == transposed[m * n + i]);
        }
    CHECK(n == 0 || K[(n - 1) * M] == strip_by_name(name, 0.0));
    /* one row at a time gives the same bits */
    double *alone = array((size_t)M);
    for (int i = 0; i < n; i++) {
        strip_values(lanes, &k, matrix_rows(M, Z), (struct rows){1, X + i, n}, alone);
        CHECK_ARRAY((size_t)M, alone, K + (size_t)i * M, 0.0);
    }
}

static void check_far(int lanes, const char *name)
{
    const struct strip_kernel k = strip_of(name);
    const double far[] = {1e3, 1e160, 1e308, NAN, 0.0};
    double X[COLUMNS * 5] = {0.0}, Z[COLUMNS] = {0.0}, K[5];
    for (int i = 0; i < 5; i++)
        X[column[1] * 5 + i] = far[i];
    strip_values(lanes, &k, matrix_rows(1, Z), matrix_rows(5, X), K);
    CHECK(K[0] == 0.0 && K[1] == 0.0 && K[2] == 0.0 && isnan(K[3]) &&
          K[4] == strip_by_name(name, 0.0));
    strip_values(lanes, &k, matrix_rows(5, X), matrix_rows(1, Z), K);
    CHECK(K[0] == 0.0 && K[1] == 0.0 && K[2] == 0.0 && isnan(K[3]) &&
          K[4] == strip_by_name(name, 0.0));
}

/* Checks products with m vectors, with a gap of 2 between vectors; they are added to results that are not 0. */
static void check_products(int lanes, int M, int n, int m)
{
    const int ldp = (M > n ? M : n) + 2;
    const size_t size = (size_t)ldp * m;
    double *K = array_random((size_t)M * n, -1.0, 1.0),
           *p = array_random(size, -1.0, 1.0), *q = array_random(size, -1.0, 1.0),
           *z = array_copy(size, p), *x = array_copy(size, q),
           *want_z = array_copy(size, p), *want_x = array_copy(size, q);
    for (int v = 0; v < m; v++)
        for (int i = 0; i < n; i++)
            for (int l = 0; l < M; l++) {
                want_z[v * ldp + l] += K[i * M + l] * q[v * ldp + i];
                want_x[v * ldp + i] += K[i * M + l] * p[v * ldp + l];
            }
    strip_products(lanes, M, n, K, m, ldp, p, q, z, x);
    CHECK_ARRAY(size, z, want_z, 1e-14);
    CHECK_ARRAY(size, x, want_x, 1e-14);
    double *sums = array_copy(size, q);
    strip_products(lanes, M, n, K, m, ldp, p, NULL, NULL, sums);
    CHECK_ARRAY(size, sums, want_x, 1e-14);
}

void group_strip(void)
{
    static const int Ms[] = {1, 2, 7, 8, 29}, ns[] = {0, 1, 3, 4, 5, 9};
    for (int lanes = 1; lanes <= 8; lanes *= 2)
        for (int k = 0; k < 6; k++) {
            check_far(lanes, names[k]);
            for (int a = 0; a < 5; a++)
                for (int b = 0; b < 6; b++) {
                    const size_t taken = arrays_taken();
                    if (!in_turn())
                        continue;
                    check_values(lanes, names[k], Ms[a], ns[b]);
                    if (ns[b] > 0 && ns[b] <= STRIP_ROWS)
                        check_products(lanes, Ms[a], ns[b], 1 + k);
                    arrays_release(taken);
                }
        }
}
