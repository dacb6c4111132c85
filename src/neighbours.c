#include <float.h>
#include <math.h>
#include "neighbours.h"
#include "simd.h"

#define MOST_INPUTS 64 /* largest number of coordinates for look_at_near() */

struct search {
    const struct tree *tree;
    const double *u;
    int s, self, below, found;
    double *r2;
    int *row;
};

/* Returns how far a number u lies outside an interval, for under = lower end - u and over = u - upper end: the positive
 * one of the two, or 0 if neither is positive. The formula is exact and has no branches. */
INSIDE double beyond(double under, double over)
{
    return 0.5 * ((under + fabs(under)) + (over + fabs(over)));
}

/* Returns the squared distance of the coordinates u from a box. It is rounded like distances in look_at_all(), so that
 * it is at most the squared distance of u from any row in the box, as computed there. */
static double box_distance(const struct tree *t, const double *box, const double *u)
{
    double sum = 0.0;
    for (int j = 0; j < t->d; j++)
        sum += squared(beyond(box[j] - u[j], u[j] - box[t->d + j]), t->at[j].gap);
    return sum;
}

/* Returns 1 if s neighbours are found, and all rows in a box at squared distance `box` are further away. The factor
 * 1 - 1e-14 allows for fused multiply-adds, which may round distances of the box and of its rows differently. */
INSIDE int too_far(const struct search *q, double box)
{
    return q->found == q->s && box * (1.0 - 1e-14) > q->r2[q->s - 1];
}

INSIDE int is_before(double r2, int row, double other_r2, int other_row)
{
    return r2 < other_r2 || (r2 == other_r2 && row < other_row);
}

INSIDE void offer(struct search *q, double r2, int row)
{
    int i = q->found;
    if (i == q->s) {
        if (!is_before(r2, row, q->r2[i - 1], q->row[i - 1]))
            return;
        i--;
    } else {
        q->found++;
    }
    for (; i > 0 && is_before(r2, row, q->r2[i - 1], q->row[i - 1]); i--) {
        q->r2[i] = q->r2[i - 1];
        q->row[i] = q->row[i - 1];
    }
    q->r2[i] = r2;
    q->row[i] = row;
}

/* Offers the first n of the `all` rows of a leaf as neighbours, with their squared distances from q->u. */
INSIDE void look_at_all(struct search *q, int start, int all, int n)
{
    const struct tree *t = q->tree;
    double r2[LEAF] = {0.0};
    for (int j = 0; j < t->d; j++) {
        const double *x = t->U + (size_t)start * t->d + (size_t)j * all;
        const double u = q->u[j], gap = t->at[j].gap;
        SIMD
        for (int i = 0; i < n; i++)
            r2[i] += squared(u - x[i], gap);
    }
    for (int i = 0; i < n; i++)
        if (t->row[start + i] != q->self)
            offer(q, r2[i], t->row[start + i]);
}

/* Returns a bound on |u - x|^2, as computed in floats, for rows x with |u - x|^2 <= r2. x and u, relative to the lower
 * end of the leaf's box, and their difference are rounded with relative error 2^-24. So the difference has an error of
 * at most 2^-22 (|u - x| + width of the box). Squares and their sum are rounded d + 2 times, or underflow. */
INSIDE float as_float(double r2, double width, int d)
{
    const double root = sqrt(r2), off = root + 0x1p-22 * (root + width),
                 most = off * off * (1.0 + (d + 4) * 0x1p-23);
    return most < FLT_MAX ? (float)most * (1.0F + 0x1p-22F) + FLT_MIN : INFINITY;
}

/* Lists in `which`, and counts, those of TILE rows (coordinates V) whose squared distance from the coordinates u,
 * computed in floats, is at most `most` or NaN. */
INSIDE int near_in_tile(const struct tree *t, int all, const float *V, const float *u,
                        float most, int *which)
{
    float r2[TILE] = {0.0F};
    int near[TILE], any = 0, count = 0;
    int j = 0;
    for (; j < t->numbers; j++, V += all) {
        const float uj = u[j];
        SIMD
        for (int i = 0; i < TILE; i++)
            r2[i] += (uj - V[i]) * (uj - V[i]);
    }
    for (; j < t->d; j++, V += all)
        for (int i = 0; i < TILE; i++)
            r2[i] += V[i] != u[j] ? (float)t->at[j].gap : 0.0F;
    SIMD
    for (int i = 0; i < TILE; i++)
        near[i] = !(r2[i] > most);
    for (int i = 0; i < TILE; i++)
        any |= near[i];
    if (!any) /* the usual case */
        return 0;
    for (int i = 0; i < TILE; i++) {
        which[count] = i;
        count += near[i];
    }
    return count;
}

INSIDE double distance(const struct tree *t, int all, const double *U, const double *u)
{
    double r2 = 0.0;
    for (int j = 0; j < t->d; j++, U += all)
        r2 += squared(u[j] - *U, t->at[j].gap);
    return r2;
}

/* Offers rows of a leaf as neighbours of q->u. Distances in floats exclude most rows before distances in doubles. */
INSIDE void look_at_near(struct search *q, size_t leaf, int start, int all, int n)
{
    const struct tree *t = q->tree;
    const size_t leaves = (size_t)1 << t->levels, at = (size_t)start * t->d;
    const float most = as_float(q->r2[q->s - 1], t->width[leaf], t->d);
    float u[MOST_INPUTS];
    int which[TILE];
    for (int j = 0; j < t->d; j++)
        u[j] = (float)(q->u[j] - t->low[leaves * j + leaf]);
    for (int i = 0; i < n; i += TILE) {
        const int count = near_in_tile(t, all, t->V + at + i, u, most, which);
        for (int c = 0; c < count && i + which[c] < n; c++) {
            const int p = i + which[c], row = t->row[start + p];
            if (row != q->self)
                offer(q, distance(t, all, t->U + at + p, q->u), row);
        }
    }
}

INSIDE void search_leaf(struct search *q, size_t leaf)
{
    const struct tree *t = q->tree;
    const int start = tree_start(t, t->levels, leaf),
              all = tree_start(t, t->levels, leaf + 1) - start;
    int n = all;
    if (t->rank != NULL) {
        n = 0;
        while (n < all && t->rank[start + n] < q->below)
            n++;
    }
    if (q->found < q->s || t->d > MOST_INPUTS)
        look_at_all(q, start, all, n);
    else
        look_at_near(q, leaf, start, all, n);
}

INSIDE int is_open(const struct search *q, size_t node)
{
    return q->tree->rank == NULL || q->tree->least_rank[node] < q->below;
}

/* Searches the leaves below node i of a level (a twig, TWIG levels above leaves), the leaf of the nearest box first. */
CLONES static void search_twig(struct search *q, int level, size_t i)
{
    const struct tree *t = q->tree;
    const size_t leaves = (size_t)1 << t->levels, n = leaves >> level, first = n * i;
    double far[1 << TWIG];
    size_t order[1 << TWIG], open = 0;
    for (size_t l = 0; l < n; l++)
        far[l] = 0.0;
    const double *low = t->low + first, *high = t->high + first;
    int j = 0;
    for (; j < t->numbers; j++, low += leaves, high += leaves) {
        const double u = q->u[j];
        SIMD
        for (size_t l = 0; l < n; l++) {
            const double off = beyond(low[l] - u, u - high[l]);
            far[l] += off * off;
        }
    }
    for (; j < t->d; j++, low += leaves, high += leaves)
        for (size_t l = 0; l < n; l++)
            far[l] += low[l] > q->u[j] || high[l] < q->u[j] ? t->at[j].gap : 0.0;
    for (size_t l = 0; l < n; l++) {
        if (too_far(q, far[l]) || !is_open(q, leaves - 1 + first + l))
            continue;
        size_t k = open++;
        for (; k > 0 && far[order[k - 1]] > far[l]; k--)
            order[k] = order[k - 1];
        order[k] = l;
    }
    for (size_t k = 0; k < open && !too_far(q, far[order[k]]); k++)
        search_leaf(q, first + order[k]);
}

/* Searches the subtree of node i of a level, the nearer child first. Nodes are numbered level by level from 0. */
static void search_node(struct search *q, int level, size_t i)
{
    const struct tree *t = q->tree;
    if (level == tree_twigs(t)) {
        search_twig(q, level, i);
        return;
    }
    const size_t child = 2 * (((size_t)1 << level) - 1 + i) + 1, two_d = 2 * (size_t)t->d;
    const double far[2] = {box_distance(t, t->box + two_d * child, q->u),
                           box_distance(t, t->box + two_d * (child + 1), q->u)};
    const size_t first = far[1] < far[0];
    for (size_t turn = 0; turn < 2; turn++) {
        const size_t side = turn == 0 ? first : 1 - first;
        if (is_open(q, child + side) && !too_far(q, far[side]))
            search_node(q, level + 1, 2 * i + side);
    }
}

int tree_nearest(const struct tree *tree, const double *u, int s, int self, int below,
                 double *r2, int *row)
{
    struct search q = {tree, u, s, self, below, 0, r2, row};
    if (s > 0 && tree->n > 0 && is_open(&q, 0))
        search_node(&q, 0, 0);
    return q.found;
}

/* Returns 1 if a row x is far from the data. The n - 1 rows between the nearest and the n-th neighbour of x have a
 * density. At this density, the empty ball up to the nearest neighbour would have at least `missing` rows. */
static int is_far(int d, int n, const double *r2)
{
    const double missing = 10.0, ball = pow(r2[0] / r2[n - 1], 0.5 * d);
    return (n - 1) * ball >= missing * (1.0 - ball);
}

static void finding_add(const void *self, const struct visit *v)
{
    const struct finding *f = self;
    const struct block *b = &v->block;
    double *u = v->work, *r2 = u + f->tree->d;
    for (int i = 0; i < b->n; i++) {
        const int self_row = f->row == NULL ? -1 : f->row[b->first + i];
        const int below = f->rank == NULL ? 0 : f->rank[self_row];
        int *near = f->near + (size_t)(b->first + i) * f->s;
        tree_coordinates(f->tree, rows_from(rows_of(b), i, 1), u);
        int found = tree_nearest(f->tree, u, f->few, self_row, below, r2, near);
        if (f->few < f->s && found > 0 && is_far(f->tree->inputs, found, r2))
            found = tree_nearest(f->tree, u, f->s, self_row, below, r2, near);
        for (int j = 0; j < f->s; j++)
            near[j] = j < found ? near[j] + 1 : 0;
    }
}

struct sink finding_sink(const struct finding *self)
{
    return row_sink(self, finding_add, 0, (size_t)self->tree->d + self->s);
}
