"""A crash of a command, or of an agent's process, ends with a sentence, not only with the shell's
"Segmentation fault".

The supervisor of a run and its agents read memory that the run's ranks can overwrite. The handler
is C: Python must not go on behind such a signal.
"""

import faulthandler

cdef extern from *:
    """
    #include <signal.h>
    #include <string.h>
    #include <unistd.h>

    static pid_t crash_process;
    static int crash_exit_code, crash_tells;

    static void crash_tell(int number) {
        static const char said[] =
            "shrimpmx crashed: a rank overwrote the run's memory, or this is a defect; "
            "PYTHONFAULTHANDLER=1 shows the place\\n";
        if (getpid() == crash_process) {
            ssize_t written = crash_tells ? write(2, said, sizeof said - 1) : 0;
            (void)written;
            _exit(crash_exit_code);
        }
        signal(number, SIG_DFL); /* a fork: its parent tells; the instruction faults again */
    }

    static int crash_listen(int exit_code, int tells) {
        struct sigaction action = {0};
        action.sa_handler = crash_tell;
        action.sa_flags = SA_ONSTACK;
        crash_process = getpid();
        crash_exit_code = exit_code;
        crash_tells = tells;
        return sigaction(SIGSEGV, &action, NULL) | sigaction(SIGBUS, &action, NULL);
    }
    """
    int crash_listen(int exit_code, int tells) noexcept


def tell_of_crashes(int exit_code, *, bint by_code=False):
    """From now on SIGSEGV and SIGBUS end this process, not its forks, with a sentence and that exit
    code, unless Python's own handler shows where they came. `by_code`: its parent has the sentence.
    """
    if not faulthandler.is_enabled():
        crash_listen(exit_code, not by_code)
