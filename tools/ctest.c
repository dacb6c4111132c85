/* Checks, memory, random numbers and main() for the tests of C. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctest.h"

/* ---- checks ------------------------------------------------------------------------ */

static struct {
    long passed, failed;
} count;

int check(int passed, const char *file, int line, const char *what)
{
    if (passed) {
        count.passed++;
    } else {
        count.failed++;
        printf("%s:%d: %s\n", file, line, what);
    }
    return passed;
}

void check_near(double got, double want, double tolerance, const char *file, int line,
                const char *what)
{
    if (!check(fabs(got - want) <= tolerance * (1.0 + fabs(want)), file, line, what))
        printf("    is %.17g, not %.17g\n", got, want);
}

void check_array(size_t n, const double *got, const double *want, double tolerance,
                 const char *file, int line, const char *what)
{
    double largest = 0.0, worst = 0.0;
    size_t where = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(want[i]));
    for (size_t i = 0; i < n; i++) {
        const double error = fabs(got[i] - want[i]);
        if (!(error <= worst)) { /* true for NaN, too */
            worst = error;
            where = i;
        }
        if (isnan(error))
            break;
    }
    if (!check(worst <= tolerance * (1.0 + largest), file, line, what))
        printf("    [%zu] of %zu is %.17g, not %.17g\n", where, n, got[where],
               want[where]);
}

/* Replaces the function that the BLAS calls for a wrong argument, which ends the program with status 0 or only
 * prints. */
void xerbla_(const char *routine, const int *argument, size_t length);
void xerbla_(const char *routine, const int *argument, size_t length)
{
    printf("%.*s: argument %d is wrong\n", (int)length, routine, *argument);
    check(0, __FILE__, __LINE__, "the BLAS and LAPACK are called with good arguments");
}

/* ---- memory ------------------------------------------------------------------------ */

static struct {
    void **item;
    size_t taken, room;
} pool;

static void *take(size_t bytes)
{
    void *memory = malloc(bytes);
    if (pool.taken == pool.room) {
        pool.room = 2 * pool.room + 64;
        pool.item = realloc(pool.item, pool.room * sizeof *pool.item);
    }
    if ((memory == NULL && bytes > 0) || pool.item == NULL) {
        puts("ctest: no memory");
        exit(2);
    }
    return pool.item[pool.taken++] = memory;
}

double *array(size_t n)
{
    double *x = take(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = NAN;
    return x;
}

double *array_random(size_t n, double low, double high)
{
    double *x = array(n);
    for (size_t i = 0; i < n; i++)
        x[i] = uniform(low, high);
    return x;
}

double *array_copy(size_t n, const double *x)
{
    double *y = array(n);
    for (size_t i = 0; i < n; i++)
        y[i] = x[i];
    return y;
}

double *array_zero(size_t n)
{
    double *x = array(n);
    for (size_t i = 0; i < n; i++)
        x[i] = 0.0;
    return x;
}

int *array_int(size_t n)
{
    int *x = take(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = -1;
    return x;
}

struct arena arrays = {.more = array};

size_t arrays_taken(void)
{
    return pool.taken;
}

void arrays_release(size_t taken)
{
    while (pool.taken > taken)
        free(pool.item[--pool.taken]);
}

/* ---- numbers ----------------------------------------------------------------------- */

static uint64_t state;

double uniform(double low, double high)
{
    state = state * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
    return low + (high - low) * ((double)(state >> 11) / 9007199254740992.0);
}

double slope(double (*f)(const void *context), const void *context, double *x)
{
    const double middle = *x, h = 5e-4 * fmax(fabs(middle), 0.1);
    double difference[2];
    for (int i = 0; i < 2; i++) {
        *x = middle + (i + 1) * h;
        difference[i] = f(context);
        *x = middle - (i + 1) * h;
        difference[i] -= f(context);
    }
    *x = middle;
    return (8.0 * difference[0] - difference[1]) / (12.0 * h);
}

static long calls; /* of in_turn() in this group */

int in_turn(void)
{
    const char *share = getenv("CTEST_SHARE");
    const long of = share != NULL ? atol(share) : 1;
    return of < 2 || calls++ % of == 0;
}

/* ---- the run ----------------------------------------------------------------------- */

#define ROW(name) {#name, group_##name},
static const struct {
    const char *name;
    void (*run)(void);
} groups[] = {GROUPS(ROW)};

int main(void)
{
    const int n_groups = (int)(sizeof groups / sizeof groups[0]);
    for (int i = 0; i < n_groups; i++) {
        const long passed = count.passed, failed = count.failed;
        state = 1;
        calls = 0;
        groups[i].run();
        arrays_release(0);
        printf("ctest: %-10s %6ld passed, %ld failed\n", groups[i].name,
               count.passed - passed, count.failed - failed);
        fflush(stdout);
    }
    free(pool.item);
    printf("ctest: %d groups, %ld checks passed, %ld failed\n", n_groups, count.passed,
           count.failed);
    return count.failed > 0;
}
