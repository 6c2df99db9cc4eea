#include "log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOG_LINE_MAX 4096

static atomic_int log_fd = STDERR_FILENO;
static atomic_int log_level_max = HOST_LOG_WARNING;

void host_log_level_max(host_log_level level)
{
    log_level_max = (int)level;
}

bool host_log_open(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);

    if (fd < 0)
        return false;
    log_fd = fd;
    return true;
}

static void write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, bytes, length);

        if (written <= 0)
            return; /* a log that cannot be written has nowhere to complain */
        bytes += written;
        length -= (size_t)written;
    }
}

void host_log(host_log_level level, const char *format, ...)
{
    static const char *const names[] = { "ERROR", "Warning", "Note" };
    char line[LOG_LINE_MAX];
    struct tm now;
    time_t seconds = time(NULL);
    size_t used;
    va_list args;

    if ((int)level > log_level_max)
        return;
    localtime_r(&seconds, &now);
    used = strftime(line, sizeof line, "%Y-%m-%d %H:%M:%S 0 ", &now);
    used += (size_t)snprintf(line + used, sizeof line - used, "[%s] ", names[level]);
    va_start(args, format);
    int wanted = vsnprintf(line + used, sizeof line - used - 1, format, args);
    va_end(args);
    if (wanted < 0)
        return;
    used += (size_t)wanted;
    if (used > sizeof line - 2)
        used = sizeof line - 2;
    line[used++] = '\n';
    write_all(log_fd, line, used);
}
