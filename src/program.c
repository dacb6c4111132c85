#include <math.h>
#include <stddef.h>
#include "program.h"

/* The first three operations push a value, the next five combine two, and the others are functions of one value. */
enum { NUMBER, LATENT, RESPONSE, ADD, SUBTRACT, TIMES, DIVIDE, POWER, NEGATE };

enum { n_operations = NEGATE + 10, deepest = 64, n_programs = 5, head = 2 + n_programs };

static int takes(int operation)
{
    return operation <= RESPONSE ? 0 : operation <= POWER ? 2 : 1;
}

/* Returns 1 if a program stays within `available` numbers and the stack, has known codes, and leaves one value. */
static int valid_program(const double *program, size_t available)
{
    int depth = 0;
    if (available < 2 || !(program[0] >= 1.0) || !(program[0] <= (double)(available - 1)))
        return 0;
    const size_t n = (size_t)program[0];
    for (size_t i = 1; i <= n; i++) {
        if (!(program[i] >= 0.0 && program[i] < n_operations))
            return 0;
        const int operation = (int)program[i];
        if (depth < takes(operation))
            return 0;
        depth += 1 - takes(operation);
        if (depth > deepest || (operation == NUMBER && ++i > n))
            return 0;
    }
    return depth == 1;
}

int programs_valid(const double *programs, size_t length)
{
    if (length <= head)
        return 0;
    for (int k = 0; k < n_programs; k++) {
        const double at = programs[2 + k];
        if (!(at >= head && at < (double)length) ||
            !valid_program(programs + (size_t)at, length - (size_t)at))
            return 0;
    }
    return 1;
}

static double negative(double a)
{
    return -a;
}

static double normal_probability(double a)
{
    return 0.5 * erfc(-a * 0.70710678118654752440);
}

static double normal_density(double a)
{
    return exp(-0.5 * a * a - 0.91893853320467274178);
}

/* These are the functions of one value, in the order of their codes from NEGATE on. */
static double (*const functions[])(double) = {
    negative, exp, log, sqrt, log1p, expm1, sin, cos, normal_probability, normal_density};

static double apply(int operation, double a, double b)
{
    switch (operation) {
    case ADD:
        return a + b;
    case SUBTRACT:
        return a - b;
    case TIMES:
        return a * b;
    case DIVIDE:
        return a / b;
    default: /* POWER */
        return b == 2.0 ? a * a : pow(a, b);
    }
}

double program_run(const double *programs, int k, double f, double y)
{
    const double *step = programs + (size_t)programs[2 + k],
                 *last = step + (size_t)step[0];
    double stack[deepest];
    int top = -1;
    while (step++ < last) {
        const int operation = (int)*step;
        if (takes(operation) == 0) {
            stack[++top] = operation == NUMBER ? *++step : operation == LATENT ? f : y;
        } else if (takes(operation) == 2) {
            top--;
            stack[top] = apply(operation, stack[top], stack[top + 1]);
        } else {
            stack[top] = functions[operation - NEGATE](stack[top]);
        }
    }
    return stack[0];
}
