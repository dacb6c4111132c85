#include <math.h>
#include <stddef.h>
#include <string.h>
#include "levels.h"

static const double pi = 3.14159265358979323846;

enum levels levels_named(const char *name)
{
    if (strcmp(name, "exchangeable") == 0)
        return LEVELS_EXCHANGEABLE;
    if (strcmp(name, "ordered") == 0)
        return LEVELS_ORDERED;
    return strcmp(name, "full") == 0 ? LEVELS_FULL : LEVELS_GIVEN;
}

int levels_parameters(enum levels kind, int n)
{
    switch (kind) {
    case LEVELS_EXCHANGEABLE:
        return 1;
    case LEVELS_ORDERED:
        return n - 1;
    case LEVELS_FULL:
        return n * (n - 1) / 2;
    default:
        return 0;
    }
}

/* Computes correlations R_ab = exp(-p) of different levels a and b, then dR_ab / dlog p = -p R_ab. */
static void exchangeable(int n, double p, double *R)
{
    double *slope = R + (size_t)n * n;
    for (int i = 0; i < n * n; i++) {
        const int same = i % (n + 1) == 0;
        R[i] = same ? 1.0 : exp(-p);
        slope[i] = same ? 0.0 : -p * R[i];
    }
}

/* Computes R_ab = exp(-|score_a - score_b|) for scores of the levels with the gaps p, then their derivatives: dR_ab /
 * dlog p_j = -p_j R_ab if gap j is between the levels a and b, else 0. */
static void ordered(int n, const double *p, double *score, double *R)
{
    score[0] = 0.0;
    for (int j = 1; j < n; j++)
        score[j] = score[j - 1] + p[j - 1];
    for (int b = 0; b < n; b++)
        for (int a = 0; a < n; a++) {
            const size_t ab = (size_t)b * n + a, nn = (size_t)n * n;
            R[ab] = exp(-fabs(score[a] - score[b]));
            for (int j = 0; j < n - 1; j++)
                R[(size_t)(j + 1) * nn + ab] = (a <= j) != (b <= j) ? -p[j] * R[ab] : 0.0;
        }
}

/* Returns an angle a_ij from its parameter p. The correlation matrix is R = L L', and rows of L have length 1: L_ij =
 * cos(a_ij) prod_{k<j} sin(a_ik), L_ii = prod_{k<i} sin(a_ik). R = I if every p is 1. */
static double angle_of(double p)
{
    return pi * p / (1.0 + p);
}

/* Returns the place of angle a_ij, i > j, of an n x n matrix among all angles, which are ordered by columns. */
static int place(int n, int i, int j)
{
    return j * n - j * (j + 1) / 2 + i - j - 1;
}

static void sphere(int n, const double *p, double *L)
{
    for (int i = 0; i < n; i++) {
        double before = 1.0;
        for (int j = 0; j < n; j++) {
            double *l = L + (size_t)j * n + i;
            if (j > i) {
                *l = 0.0;
            } else if (j == i) {
                *l = before;
            } else {
                const double angle = angle_of(p[place(n, i, j)]);
                *l = cos(angle) * before;
                before *= sin(angle);
            }
        }
    }
}

/* Returns the derivative of entry L_ic of the correlations' Cholesky factor in the angle of row i and column j <= c. */
static double sphere_slope(int n, const double *p, const double *L, int i, int j, int c)
{
    const double angle = angle_of(p[place(n, i, j)]), l = L[(size_t)c * n + i];
    double before = 1.0;
    if (c > j)
        return l * cos(angle) / sin(angle);
    if (fabs(cos(angle)) >= 1e-8)
        return -l * tan(angle);
    for (int k = 0; k < j; k++)
        before *= sin(angle_of(p[place(n, i, k)]));
    return -before * sin(angle);
}

static void full(int n, const double *p, double *L, double *R)
{
    const size_t nn = (size_t)n * n;
    sphere(n, p, L);
    for (int b = 0; b < n; b++)
        for (int a = 0; a < n; a++) {
            double sum = 0.0;
            for (int k = 0; k < n; k++)
                sum += L[(size_t)k * n + a] * L[(size_t)k * n + b];
            R[(size_t)b * n + a] = a == b ? 1.0 : sum;
        }
    for (int j = 0; j < n; j++)
        for (int i = j + 1; i < n; i++) {
            const int at = place(n, i, j);
            const double turn = pi * p[at] / ((1.0 + p[at]) * (1.0 + p[at]));
            double *slope = R + (size_t)(at + 1) * nn;
            for (size_t ab = 0; ab < nn; ab++)
                slope[ab] = 0.0;
            for (int a = 0; a < n; a++) {
                double sum = 0.0;
                for (int c = j; c <= i; c++)
                    sum += L[(size_t)c * n + a] * sphere_slope(n, p, L, i, j, c);
                slope[(size_t)a * n + i] = slope[(size_t)i * n + a] =
                    a == i ? 0.0 : sum * turn;
            }
        }
}

void levels_table(enum levels kind, int n, const double *p, double *work, double *table)
{
    if (kind == LEVELS_EXCHANGEABLE)
        exchangeable(n, *p, table);
    if (kind == LEVELS_ORDERED)
        ordered(n, p, work, table);
    if (kind == LEVELS_FULL)
        full(n, p, work, table);
}

void levels_covariance(enum levels kind, int n, const double *p, double *work,
                       double *table)
{
    const size_t nn = (size_t)n * n;
    const int angles = levels_parameters(kind, n);
    /* The table gets the covariance, its derivatives in n - 1 scales, and those in angles. The correlations R use the
     * place of the derivative in the last scale, which overwrites them at the end. */
    double *R = table + (size_t)(n - 1) * nn;
    for (size_t ab = 0; ab < nn; ab++)
        R[ab] = ab % (size_t)(n + 1) == 0 ? 1.0 : 0.0;
    if (kind == LEVELS_FULL)
        full(n, p + n - 1, work, R);
    for (int b = 0; b < n; b++)
        for (int a = 0; a < n; a++) {
            const size_t ab = (size_t)b * n + a;
            const double scale = (a > 0 ? p[a - 1] : 1.0) * (b > 0 ? p[b - 1] : 1.0);
            table[ab] = R[ab] * scale;
            for (int j = 0; j < angles; j++)
                R[(size_t)(j + 1) * nn + ab] *= scale;
        }
    for (int j = n - 1; j > 0; j--)
        for (int b = 0; b < n; b++)
            for (int a = 0; a < n; a++) {
                const size_t ab = (size_t)b * n + a;
                table[(size_t)j * nn + ab] = table[ab] * ((a == j) + (b == j));
            }
}
