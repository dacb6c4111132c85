/* Random problems, their row blocks, and the sums of a first pass over them. */
#include "ctest.h"
#include "linalg.h"
#include "gram.h"

const char *const kernel_names[] = {"se", "matern12", "matern32", "matern52"};
const int n_kernels = (int)(sizeof kernel_names / sizeof kernel_names[0]);

struct covariance covariance_new(const char *name, int d, int columns)
{
    struct covariance c = {name, {0}, array_random((size_t)d, 0.6, 1.2), NULL, d};
    struct factor *factor = (struct factor *)array(sizeof *factor / sizeof(double) + 1);
    struct term *term = (struct term *)array(sizeof *term / sizeof(double) + 1);
    int *column = array_int((size_t)d), *which = array_int(1);
    for (int j = 0; j < d; j++)
        column[j] = columns - 1 - j;
    which[0] = 0;
    *factor = (struct factor){.profile = profile_of(name),
                              .d = d,
                              .column = column,
                              .n_parameters = d,
                              .parameter = c.lengthscale};
    *term = (struct term){.variance = 1.3, .n_factors = 1, .factor = which};
    c.variance = &term->variance;
    kernel_places(1, factor, 1, term, &c.kernel);
    return c;
}

struct problem problem_new(const char *kernel, struct shape shape, int p, int weighted)
{
    const size_t N = (size_t)shape.N, M = (size_t)shape.M, n_u = (size_t)shape.n_u,
                 q = (size_t)shape.q, columns = (size_t)shape.columns;
    struct problem a = {.covariance = covariance_new(kernel, shape.d, shape.columns),
                        .shape = shape,
                        .p = p,
                        .s2 = 0.2,
                        .jitter = 0.01};
    a.X = array_random(N * columns, -2.0, 2.0);
    a.y = array_random(N, -1.0, 1.0);
    a.scale = weighted ? array_random(N, 0.3, 1.5) : NULL;
    a.Z = array_random(M * columns, -2.0, 2.0);
    a.U = array_random(n_u * columns, -2.0, 2.0);
    a.W = array_random(n_u * q, -0.5, 0.5);
    a.sign = array(q);
    for (size_t j = 0; j < q; j++) /* the last sign, of the mean, is +1 */
        a.sign[j] = (q - 1 - j) % 2 == 0 ? 1.0 : -1.0;
    return a;
}

void for_problems(const struct shape *shapes, int n_shapes, int p, problem_check *check)
{
    for (int k = 0; k < n_kernels; k++)
        for (int i = 0; i < n_shapes; i++)
            for (int weighted = 0; weighted < 2; weighted++) {
                const size_t taken = arrays_taken();
                struct problem a = problem_new(kernel_names[k], shapes[i], p, weighted);
                check(&a);
                arrays_release(taken);
            }
}

struct lowrank problem_aux(const struct problem *p)
{
    return (struct lowrank){.kernel = &p->covariance.kernel,
                            .p = p->p,
                            .n_u = p->shape.n_u,
                            .U = p->U,
                            .q = p->shape.q,
                            .W = p->W,
                            .sign = p->sign};
}

struct inducing problem_points(const struct problem *p)
{
    struct model *model = (struct model *)array(sizeof *model / sizeof(double));
    *model = (struct model){&p->covariance.kernel, p->s2};
    return (struct inducing){model, p->shape.M, p->shape.columns, p->Z, NULL, p->jitter};
}

struct block block_rows(const struct problem *p, int first, int n)
{
    const int columns = p->shape.columns, N = p->shape.N, ldx = n + 2;
    double *X = array((size_t)(columns - 1) * ldx + n);
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < n; i++)
            X[(size_t)j * ldx + i] = p->X[(size_t)j * N + first + i];
    return (struct block){n,
                          X,
                          ldx,
                          array_copy((size_t)n, p->y + first),
                          p->scale == NULL ? NULL
                                           : array_copy((size_t)n, p->scale + first),
                          first};
}

/* Computes K, A and W_x' of a block, and adds the block to the sums. */
static void piece_sums(const struct problem *p, const struct lowrank *aux,
                       const struct inducing *z, struct piece *piece, double *sums)
{
    const struct block *b = &piece->block;
    const size_t n = (size_t)b->n, M = (size_t)z->M;
    piece->K = array(M * n);
    piece->A = array(M * n);
    piece->Wt = piece->AK = NULL;
    kernel_cross(z->model->kernel, points_of(z), rows_of(b), piece->K);
    inducing_whiten(z, b->n, b->scale, piece->K, piece->A);
    if (aux != NULL) {
        const struct panel panel = {aux, NULL};
        piece->Wt = panel_rows(&panel, b, array(panel_size(&panel, b->n)));
    }
    stats_add(&p->covariance.kernel, z->M, aux ? aux->q : 0, b, piece->A, piece->Wt,
              array(2 * n), sums);
}

/* Computes A K of each block from all pairs of blocks, and W0 = A K A'. */
static void pairs_sums(struct pieces *pass)
{
    const int M = pass->z.M;
    pass->W0 = array_zero((size_t)M * M);
    for (int i = 0; i < pass->n_pieces; i++) {
        struct piece *here = pass->piece + i;
        here->AK = array_zero((size_t)M * here->block.n);
        for (int j = 0; j < pass->n_pieces; j++) {
            const struct piece *there = pass->piece + j;
            pairs_add(pass->z.model->kernel, &here->block, &there->block, M, there->A,
                      array((size_t)here->block.n * there->block.n), here->AK);
        }
        mult_ABt(M, here->block.n, M, 1.0, here->AK, here->A, 1.0, pass->W0);
    }
}

void pieces_make(const struct problem *p, const struct lowrank *aux, int block,
                 struct pieces *pass)
{
    const int M = p->shape.M, N = p->shape.N, q = aux ? aux->q : 0;
    double *L = array((size_t)M * M), *sums = array_zero(stats_size(M, q));
    pass->z = problem_points(p);
    pass->status = inducing_factor(&pass->z, L);
    pass->n_pieces = 0;
    pass->W0 = NULL;
    if (pass->status != STATUS_OK)
        return;
    for (int first = 0; first < N || (first == N && block < N); first += block) {
        const int left = N - first, n = left < block ? left : block;
        struct piece *piece = pass->piece + pass->n_pieces;
        piece->block = block_rows(p, first, n);
        piece_sums(p, aux, &pass->z, piece, sums);
        pass->n_pieces++;
    }
    if (aux != NULL && aux->p)
        pairs_sums(pass);
    pass->status = stats_finish(M, q, sums, &pass->stats);
}
