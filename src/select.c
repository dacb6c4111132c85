#include <math.h>
#include "select.h"
#include "linalg.h"

void select_start(struct select_state *s, struct arena *arena)
{
    const size_t n = (size_t)s->X.n, most = (size_t)s->most;
    s->A = arena_take(arena, n * most);
    s->prior = arena_take(arena, n);
    s->E = arena_take(arena, n);
    s->t = arena_take(arena, most);
    s->work = arena_take(arena, most + n);
    s->m = 0;
    kernel_diagonal(s->kernel, s->X, s->prior);
    copy(n, s->prior, s->E);
}

int select_step(struct select_state *s, double tolerance)
{
    const struct rows X = s->X;
    const int n = X.n, m = s->m;
    double *row = s->work, *column = row + s->most;
    double *a = s->A + (size_t)m * n;
    int best = -1;

    for (int i = 0; i < n; i++)
        if (s->E[i] > tolerance * s->prior[i] && (best < 0 || s->E[i] > s->E[best]))
            best = i;
    if (m >= s->most || best < 0)
        return 0;

    /* the pivot x (row `best`) adds the column a = (k(X, x) - A A[best, ]') / sqrt(E[best]) to the factor A */
    kernel_cross(s->kernel, X, rows_from(X, best, 1), column);
    for (int j = 0; j < m; j++)
        row[j] = s->A[(size_t)j * n + best];
    copy((size_t)n, column, a);
    mult_Ax(n, m, -1.0, s->A, row, 1.0, a);

    const double root = sqrt(s->E[best]);
    double t = 0.0;
    for (int i = 0; i < n; i++) {
        a[i] /= root;
        const double left = s->E[i] - a[i] * a[i];
        /* a row that equals the pivot gets residual prior variance E = 0, also after rounding */
        const int twin = column[i] == s->prior[best] && column[i] == s->prior[i];
        s->E[i] = twin || left < 0.0 ? 0.0 : left;
        t += s->E[i];
    }
    a[best] = root;
    s->pivot[m] = best;
    s->t[m] = t;
    s->m = m + 1;
    return 1;
}

enum { guided_block = 64 };

void guided_start(struct guided_state *g, struct arena *arena)
{
    const int r = g->r;
    const size_t n = (size_t)g->n, most = (size_t)g->most,
                 step = 2 * (size_t)r + 2 * n + most;
    double *work = arena_take(arena, (size_t)r * guided_block);
    g->left = arena_take(arena, n);
    g->gain = arena_take(arena, n);
    g->B = arena_take(arena, r * most);
    g->S = arena_take(arena, n * most);
    g->work = arena_take(arena, step);
    g->m = 0;
    g->first = 0.0;
    for (int from = 0; from < g->n; from += guided_block) {
        const int n = min_int(g->n - from, guided_block);
        const double *V = g->V + (size_t)from * r;
        mult_AB(r, r, n, 1.0, g->P, V, 0.0, work);
        for (int i = 0; i < n; i++) {
            const double *v = V + (size_t)i * r;
            const double gain = dot((size_t)r, v, work + (size_t)i * r);
            g->left[from + i] = sum_squares((size_t)r, v);
            g->gain[from + i] = gain;
            if (gain > g->first)
                g->first = gain;
        }
    }
}

/* Returns the column of V with the largest gain / left = v'P v / v'v, where v is its part orthogonal to the columns
 * chosen so far and P is g->P. If all gains are rounding errors (<= 1e-11 times the largest gain at the start), returns
 * the column of largest `left`, or -1 if this is <= `least`. */
static int best_column(const struct guided_state *g, double least)
{
    double best_worth = 0.0, most_left = least;
    int best = -1, fullest = -1;
    for (int i = 0; i < g->n; i++) {
        if (!(g->left[i] > least))
            continue;
        const double worth = g->gain[i] / g->left[i];
        if (g->gain[i] > 1e-11 * g->first && worth > best_worth) {
            best_worth = worth;
            best = i;
        }
        if (g->left[i] > most_left) {
            most_left = g->left[i];
            fullest = i;
        }
    }
    return best >= 0 ? best : fullest;
}

int guided_step(struct guided_state *g, double least)
{
    const int r = g->r, n = g->n, m = g->m;
    double *pair = g->work, *b = g->B + (size_t)m * r, *s = g->S + (size_t)m * n,
           *both = pair + 2 * (size_t)r, *row = both + 2 * (size_t)n;
    int at;
    double length;
    do {
        at = m < g->most ? best_column(g, least) : -1;
        if (at < 0)
            return 0;
        copy((size_t)r, g->V + (size_t)at * r, b);
        for (int twice = 0; twice < 2;
             twice++) { /* the second time removes rounding errors */
            mult_Atx(r, m, 1.0, g->B, b, 0.0, row);
            mult_Ax(r, m, -1.0, g->B, row, 1.0, b);
        }
        length = sqrt(sum_squares((size_t)r, b));
        g->left[at] = 0.0;
    } while (!(length * length > least));
    for (int i = 0; i < r; i++)
        b[i] /= length;

    /* b is the new column of the orthonormal basis B of pivots. For each column v_i of V, `both` gets b'v_i and (P
     * b)'v_i, and s gets (P b)'c_i, where c_i is the part of v_i orthogonal to the earlier pivots. b'c_i is b'v_i. */
    copy((size_t)r, b, pair);
    mult_Ax(r, r, 1.0, g->P, b, 0.0, pair + r);
    mult_AtB(2, r, n, 1.0, pair, g->V, 0.0, both);
    mult_Atx(r, m, 1.0, g->B, pair + r, 0.0, row);
    for (int i = 0; i < n; i++)
        s[i] = both[2 * (size_t)i + 1];
    mult_Ax(n, m, -1.0, g->S, row, 1.0, s); /* s is (P b)'c_i until the next loop */
    const double bPb = dot((size_t)r, b, pair + r);
    for (int i = 0; i < n; i++) {
        const double along = both[2 * (size_t)i];
        const double gain = g->gain[i] - along * (2.0 * s[i] - along * bPb);
        const double left = g->left[i] - along * along;
        g->gain[i] = gain > 0.0 ? gain : 0.0;
        g->left[i] = left > 0.0 ? left : 0.0;
        s[i] = along;
    }
    g->left[at] = 0.0;
    g->pivot[m] = at;
    g->m = m + 1;
    return 1;
}
