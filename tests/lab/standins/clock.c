/* Another time of day for the program that loads it: CLOCK_BY is how many seconds it is off. Other clocks are right. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    const char *by = getenv("CLOCK_BY");
    if (!failed && clock == CLOCK_REALTIME && by) now->tv_sec += atol(by);
    return failed;
}
