#include <stddef.h>
#include <string.h>
#include "blas_threads.h"

#if defined(__unix__) || (defined(__APPLE__) && defined(__MACH__))
#include <dlfcn.h>

static const struct {
    const char *get, *set;
} entries[] = {
    {"openblas_get_num_threads", "openblas_set_num_threads"},
    {"MKL_Get_Max_Threads", "MKL_Set_Num_Threads"},
};

int blas_threads(int n)
{
    int before = 0;
    void *loaded = dlopen(NULL, RTLD_LAZY); /* the program and its libraries */
    if (loaded == NULL)
        return 0;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0] && before == 0; i++) {
        void *get = dlsym(loaded, entries[i].get), *set = dlsym(loaded, entries[i].set);
        int (*get_threads)(void);
        void (*set_threads)(int);
        if (get == NULL || set == NULL)
            continue;
        memcpy(&get_threads, &get, sizeof get); /* ISO C has no cast from void * */
        memcpy(&set_threads, &set, sizeof set);
        before = get_threads();
        if (n >= 1 && n != before)
            set_threads(n);
    }
    dlclose(loaded);
    return before;
}

#else

int blas_threads(int n)
{
    (void)n;
    return 0;
}

#endif
