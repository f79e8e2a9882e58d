/* Sleeps where no signal comes, 20 ms at a time, again and again: as a process that waits for a disk now and then.

   The parent of vfork() sleeps in state D until its child ends. */

#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    for (;;) {
        pid_t child = vfork();
        if (child == 0) {
            usleep(20000);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
}
