#include "lowrank.h"
#include "kernel_pull.h"
#include "linalg.h"

void lowrank_rows(const struct lowrank *nu, int n, const double *scale, const double *K_u,
                  double *Wt)
{
    mult_AtB(nu->q, nu->n_u, n, 1.0, nu->W, K_u, 0.0, Wt);
    scale_columns(nu->q, n, scale, Wt);
}

int panel_columns(const struct panel *p)
{
    return p->nu == NULL ? 0 : p->nu->q;
}

size_t panel_size(const struct panel *p, int n)
{
    const int made = p->nu != NULL && p->Wt == NULL;
    return made ? ((size_t)p->nu->n_u + p->nu->q) * n : 0;
}

const double *panel_rows(const struct panel *p, const struct block *b, double *work)
{
    const struct lowrank *nu = p->nu;
    if (panel_size(p, 1) == 0)
        return p->Wt == NULL ? NULL : p->Wt + (size_t)b->first * p->nu->q;
    double *Wt = work + (size_t)nu->n_u * b->n;
    kernel_cross(nu->kernel, nu->n_u, nu->U, nu->n_u, b->n, b->X, b->ldx, work);
    lowrank_rows(nu, b->n, b->scale, work, Wt);
    return Wt;
}

static void values_add(const void *self, const struct visit *v)
{
    const struct panel_values *to = self;
    const size_t q = (size_t)to->panel.nu->q;
    copy(q * v->block.n, panel_rows(&to->panel, &v->block, v->work),
         to->Wt + q * v->block.first);
}

struct sink panel_sink(const struct panel_values *self, int block)
{
    return (struct sink){
        .self = self, .n_work = panel_size(&self->panel, block), .add = values_add};
}

void lowrank_points(const struct lowrank *nu, int M, const double *Z, double *K_zu,
                    double *Wm)
{
    kernel_cross(nu->kernel, M, Z, M, nu->n_u, nu->U, nu->n_u, K_zu);
    mult_AB(M, nu->n_u, nu->q, 1.0, K_zu, nu->W, 0.0, Wm);
}

size_t lowrank_pull_size(const struct lowrank *nu, int M)
{
    return (size_t)M * nu->n_u + kernel_size(nu->kernel, M);
}

void lowrank_pull(const struct lowrank *nu, int M, const double *Z, const double *K_zu,
                  const double *Wm_bar, double *work, double *dZ)
{
    double *K_bar = work, *rest = work + (size_t)M * nu->n_u;
    mult_ABt(M, nu->q, nu->n_u, 1.0, Wm_bar, nu->W, 0.0, K_bar); /* Wm_bar W' */
    kernel_pull(nu->kernel, M, Z, M, nu->n_u, nu->U, nu->n_u, K_zu, K_bar, rest, dZ,
                NULL);
}
