#include "lowrank.h"
#include "kernel_pull.h"
#include "linalg.h"

int panel_columns(const struct panel *p)
{
    return p->aux == NULL ? 0 : p->aux->q;
}

size_t panel_size(const struct panel *p, int n)
{
    const int made = p->aux != NULL && p->Wt == NULL;
    return made ? ((size_t)p->aux->n_u + p->aux->q) * n : 0;
}

const double *panel_rows(const struct panel *p, const struct block *b, double *work)
{
    const struct lowrank *aux = p->aux;
    if (panel_size(p, 1) == 0)
        return p->Wt == NULL ? NULL : p->Wt + (size_t)b->first * p->aux->q;
    double *Wt = work + (size_t)aux->n_u * b->n;
    kernel_cross(aux->kernel, matrix_rows(aux->n_u, aux->U), rows_of(b), work);
    mult_AtB(aux->q, aux->n_u, b->n, 1.0, aux->W, work, 0.0, Wt);
    scale_columns(aux->q, b->n, b->scale, Wt);
    return Wt;
}

static void values_add(const void *self, const struct visit *v)
{
    const struct panel_values *to = self;
    const size_t q = (size_t)to->panel.aux->q;
    copy(q * v->block.n, panel_rows(&to->panel, &v->block, v->work),
         to->Wt + q * v->block.first);
}

struct sink panel_sink(const struct panel_values *self)
{
    return row_sink(self, values_add, panel_size(&self->panel, 1), 0);
}

void lowrank_points(const struct lowrank *aux, const struct inducing *z, double *K_zu,
                    double *T)
{
    kernel_cross(aux->kernel, points_of(z), matrix_rows(aux->n_u, aux->U), K_zu);
    mult_AB(z->M, aux->n_u, aux->q, 1.0, K_zu, aux->W, 0.0, T);
    inducing_whiten(z, aux->q, NULL, T, T);
}

void lowrank_pull(const struct lowrank *aux, const struct inducing *z, const double *K_zu,
                  const double *Wm_bar, struct arena *arena, double *dZ)
{
    double *K_bar = arena_take(arena, (size_t)z->M * aux->n_u),
           *rest = arena_take(arena, kernel_size(aux->kernel, z->M));
    mult_ABt(z->M, aux->q, aux->n_u, 1.0, Wm_bar, aux->W, 0.0, K_bar); /* Wm_bar W' */
    kernel_pull(aux->kernel, points_of(z), matrix_rows(aux->n_u, aux->U), K_zu, K_bar,
                rest, dZ, NULL);
}
