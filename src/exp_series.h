#pragma once

/* exp(x) = 2^k exp(r), k = x / log 2 rounded, exp(r) = 1 + r + r^2 q(r) on |r| <= log(2) / 2. EXP_Q(r) is q(r) for a
 * double or a vector of doubles. Without rounding, the relative error of exp(r) is at most 1.6e-17. */
#define EXP_Q(r)                                                                         \
    (0x1.0000000000001p-1 +                                                              \
     r * (0x1.5555555555556p-3 +                                                         \
          r * (0x1.5555555553d63p-5 +                                                    \
               r * (0x1.11111111109b3p-7 +                                               \
                    r * (0x1.6c16c1788bd90p-10 +                                         \
                         r * (0x1.a01a01a7c41d5p-13 +                                    \
                              r * (0x1.a019b90d2ae7ap-16 +                               \
                                   r * (0x1.71de0dae63bb3p-19 +                          \
                                        r * (0x1.289185613a3d6p-22 +                     \
                                             r * 0x1.af38a9b0ec855p-26)))))))))

#define LOG2_E 0x1.71547652b82fep0
/* log 2 = LOG_2_HIGH + LOG_2_LOW. For the integers k in exp(x) = 2^k exp(r), the product k LOG_2_HIGH is exact. */
#define LOG_2_HIGH 0x1.62e42fee00000p-1
#define LOG_2_LOW  0x1.a39ef35793c76p-33
/* The last bits of the double x + TO_INTEGER are the integer nearest to x. */
#define TO_INTEGER 0x1.8p52
