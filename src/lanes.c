#include "exp_series.h"
#include "lanes.h"
#include "simd.h"
#include "vectors.h"

#define PAGE "lanes_tile.h"
#include "kinds.h"

#define KIND(lanes, vector)                                                              \
    {                                                                                    \
        LANES_OF(vector), values_##lanes, slope_##lanes, multiply_##lanes, chol_##lanes, \
            solve_##lanes, kriging_##lanes, moments_##lanes                              \
    }
static const struct lanes kinds[N_KINDS] = KINDS(KIND);

const struct lanes *lanes_of(int most)
{
    return kinds + widest_kind(most);
}
