#include <math.h>
#include <stddef.h>
#include "program.h"

enum operation {
    NUMBER,
    LATENT,
    RESPONSE,
    ADD,
    SUBTRACT,
    TIMES,
    DIVIDE,
    POWER,
    NEGATE,
    EXP,
    LOG,
    SQRT,
    LOG1P,
    EXPM1,
    SIN,
    COS,
    PNORM,
    DNORM,
    N_OPERATIONS
};

enum { deepest = 64, n_programs = 5, head = 2 + n_programs };

static int takes(int operation)
{
    return operation <= RESPONSE ? 0 : operation <= POWER ? 2 : 1;
}

/* A program is its length and its steps; a NUMBER is followed by its value. */
static int valid_program(const double *program, size_t room)
{
    int depth = 0;
    if (room < 2 || !(program[0] >= 1.0) || !(program[0] <= (double)(room - 1)))
        return 0;
    const size_t n = (size_t)program[0];
    for (size_t i = 1; i <= n; i++) {
        if (!(program[i] >= 0.0 && program[i] < N_OPERATIONS))
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
    case POWER:
        return b == 2.0 ? a * a : pow(a, b);
    case NEGATE:
        return -a;
    case EXP:
        return exp(a);
    case LOG:
        return log(a);
    case SQRT:
        return sqrt(a);
    case LOG1P:
        return log1p(a);
    case EXPM1:
        return expm1(a);
    case SIN:
        return sin(a);
    case COS:
        return cos(a);
    case PNORM:
        return 0.5 * erfc(-a * 0.70710678118654752440);
    default:
        return exp(-0.5 * a * a - 0.91893853320467274178);
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
            stack[top] = apply(operation, stack[top], 0.0);
        }
    }
    return stack[0];
}
