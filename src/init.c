#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>
#include "ffi.h"

#define REGISTERED(name, n) {"ffi_" #name, (DL_FUNC)(void (*)(void)) & ffi_##name, n},

static const R_CallMethodDef doors[] = {DOORS(REGISTERED){NULL, NULL, 0}};

void attribute_visible R_init_pfdtc(DllInfo *dll)
{
    R_registerRoutines(dll, NULL, doors, NULL, NULL);
    R_useDynamicSymbols(dll, FALSE);
    R_forceSymbols(dll, TRUE);
}
