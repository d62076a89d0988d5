/* A disk of known speed: every fdatasync of the process lasts at least BENCH_FLUSH_US microseconds.
   Put in with LD_PRELOAD, below SQLite and below the interpreter, so that nothing but the flush gets slower. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int fdatasync(int descriptor) {
    static int (*real)(int);
    static long long least_ns = -1;
    if (least_ns < 0) {
        const char *given = getenv("BENCH_FLUSH_US");
        least_ns = given ? atoll(given) * 1000 : 0;
        real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    }
    long long end = now_ns() + least_ns;
    int result = real(descriptor);
    long long left = end - now_ns();
    if (left > 0) {
        prctl(PR_SET_TIMERSLACK, 1UL);
        struct timespec pause = {left / 1000000000LL, left % 1000000000LL};
        nanosleep(&pause, NULL);
    }
    return result;
}
