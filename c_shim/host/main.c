/*
 * xtradb-host: a small server and its client in one process.
 *
 * Reads options, loads plugins, opens the data directory, runs statements, closes everything.
 * Exit status: 0 all went well; 1 a statement failed, or the host did not start or stop; others as
 * in options.h.
 */
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host.h"
#include "log.h"
#include "options.h"
#include "output.h"
#include "registry.h"
#include "script.h"
#include "shell.h"
#include "xtradb.h"

static _Atomic(shell *) running_shell;

/* -------------------------------------------------------------------------------- signals */

static void wake(int signal)
{
    (void)signal; /* its arrival alone ends a blocking read */
}

/*
 * SIGINT interrupts the running statement; SIGTERM and SIGHUP also end the host in an orderly way.
 * One thread takes them all, so that no code runs in a handler.
 */
static void *signal_main(void *argument)
{
    pthread_t main_thread = *(pthread_t *)argument;
    sigset_t wanted;

    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGHUP);
    for (;;) {
        int signal = 0;
        shell *sh;

        sigwait(&wanted, &signal);
        sh = running_shell;
        if (sh != NULL)
            shell_stop(sh, signal != SIGINT);
        if (signal != SIGINT)
            pthread_kill(main_thread, SIGUSR1);
    }
    return NULL;
}

/* Before any other thread exists, so that all of them inherit the mask. */
static bool start_signals(pthread_t *thread)
{
    static pthread_t main_thread;
    struct sigaction action = { .sa_handler = wake };
    sigset_t blocked;

    main_thread = pthread_self();
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    sigaction(SIGUSR1, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    return pthread_create(thread, NULL, signal_main, &main_thread) == 0;
}

static void stop_signals(pthread_t thread)
{
    pthread_cancel(thread); /* it stands in sigwait, which is where it may be cancelled */
    pthread_join(thread, NULL);
}

/* ------------------------------------------------------------------------------- the host */

static void log_line(host *h, int level, const char *text)
{
    static const host_log_level levels[] = { HOST_LOG_NOTE, HOST_LOG_WARNING, HOST_LOG_ERROR };

    (void)h;
    host_log(levels[level < 0 || level > 2 ? 2 : level], "%s", text);
}

/* The directory's absolute path without a slash at its end, or NULL (logged). */
static char *directory(const char *path, const char *what)
{
    char *absolute = realpath(path, NULL);
    struct stat info;

    if (absolute == NULL || stat(absolute, &info) != 0 || !S_ISDIR(info.st_mode)) {
        int code = absolute == NULL ? errno : ENOTDIR;

        host_log(HOST_LOG_ERROR, "Can't change dir to '%s' (%s; errno: %d \"%s\")", path, what, code,
                 strerror(code));
        free(absolute);
        return NULL;
    }
    return absolute;
}

/* 0, or the exit code of the process. */
static int host_start(host *h, const host_options *options)
{
    int result;

    *h = (host){ .log = log_line, .next_session_id = 1 };
    pthread_mutex_init(&h->lock, NULL);
    h->datadir = directory(options->datadir, "datadir");
    if (h->datadir == NULL)
        return 1;
    h->plugin_dir = realpath(options->plugin_dir, NULL);
    if (h->plugin_dir == NULL)
        h->plugin_dir = strdup(options->plugin_dir); /* the loader will say what it misses there */
    if (catalog_open(h) != 0) {
        host_log(HOST_LOG_ERROR, "Can't read the table definitions in '%s'", h->datadir);
        return 1;
    }
    result = registry_open(h, options);
    if (result != 0)
        host_log(HOST_LOG_ERROR, "Aborting");
    return result;
}

static bool host_stop(host *h)
{
    bool stopped = h->registry == NULL || registry_close(h);

    if (h->catalog != NULL)
        catalog_close(h);
    for (size_t i = 0; i < h->setting_count; i++) {
        free(h->settings[i].name);
        free(h->settings[i].value);
    }
    free(h->settings);
    free(h->datadir);
    free(h->plugin_dir);
    pthread_mutex_destroy(&h->lock);
    return stopped;
}

/* -------------------------------------------------------------------------------- running */

static bool run_files(shell *sh, const host_options *options)
{
    bool good = true;

    for (size_t i = 0; good && i < options->files.count && !shell_quits(sh); i++) {
        FILE *file = fopen(options->files.items[i], "re");

        if (file == NULL) {
            fprintf(stderr, "ERROR: Failed to open file '%s', error: %d (%s)\n",
                    options->files.items[i], errno, strerror(errno));
            return false;
        }
        good = shell_run_stream(sh, file);
        fclose(file);
    }
    return good;
}

static bool run_shell(shell *sh, const host_options *options, bool prompt)
{
    bool good = true;

    if (options->database != NULL && !shell_use(sh, options->database))
        return false;
    if (options->execute.count == 0 && options->files.count == 0)
        return prompt ? shell_run_prompt(sh) : shell_run_stream(sh, stdin);
    for (size_t i = 0; good && i < options->execute.count && !shell_quits(sh); i++)
        good = shell_run_string(sh, options->execute.items[i]);
    return good && run_files(sh, options);
}

/* Form and chattiness as the client decides them: by terminal, -B, -s, -t, -v. */
static output_style style_of(const host_options *o, bool terminal, bool prompt)
{
    unsigned silent = o->silent + (o->batch || !terminal ? 1 : 0);
    bool table = o->table || silent == 0 || o->verbose > 2;

    return (output_style){
        .form = o->vertical ? OUTPUT_VERTICAL : table ? OUTPUT_TABLE : OUTPUT_BATCH,
        .names = o->column_names && silent < 2,
        .raw = o->raw,
        .counts = (prompt && silent == 0) || o->verbose > 1,
        .timing = (prompt && silent == 0) || o->verbose > 2,
        .line_numbers = !prompt,
    };
}

static int run_client(host *h, const host_options *options)
{
    bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    bool prompt = terminal && !options->batch && options->execute.count == 0 &&
                  options->files.count == 0;
    output_style style = style_of(options, terminal, prompt);
    shell_settings settings = { .interactive = prompt, .force = options->force,
                                .show_warnings = options->show_warnings,
                                .verbose = options->verbose, .prompt = options->prompt };
    session *s = session_open(h);
    output *o = output_new(stdout, stderr, &style);
    shell *sh;
    bool good;

    if (s == NULL) {
        output_free(o);
        return 1;
    }
    sh = shell_new(s, o, &settings);
    if (prompt)
        puts("Welcome to xtradb-host. Commands end with ; or \\g. Type 'help;' or '\\h' for help.\n");
    running_shell = sh;
    good = run_shell(sh, options, prompt);
    running_shell = NULL;
    session_close(s);
    shell_free(sh);
    output_free(o);
    return good ? 0 : 1;
}

static int run_sessions(host *h, const host_options *options)
{
    FILE *file = strcmp(options->sessions, "-") == 0 ? stdin : fopen(options->sessions, "re");
    bool good;

    if (file == NULL) {
        fprintf(stderr, "ERROR: Failed to open file '%s', error: %d (%s)\n", options->sessions,
                errno, strerror(errno));
        return 1;
    }
    good = script_run(h, file, stdout, options->database, options->step_timeout);
    if (file != stdin)
        fclose(file);
    return good ? 0 : 1;
}

static int start_log(const host_options *options)
{
    host_log_level_max(options->log_warnings >= 3 ? HOST_LOG_NOTE
                       : options->log_warnings >= 1 ? HOST_LOG_WARNING : HOST_LOG_ERROR);
    if (options->log_error == NULL || host_log_open(options->log_error))
        return 0;
    host_log(HOST_LOG_ERROR, "Can't open the error log '%s' (errno: %d \"%s\")", options->log_error,
             errno, strerror(errno));
    return 1;
}

/* Each table that is in use has its file open: as many as the system lets us have. */
static void raise_open_files(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files); /* else the limit stays as it is */
    }
}

int main(int argc, char **argv)
{
    host_options options;
    pthread_t signals;
    bool has_signals;
    host h;
    int result;

    setlocale(LC_CTYPE, "");
    result = options_read(&options, argc, argv);
    if (result == 0 && (options.help || options.version)) {
        if (options.help)
            options_print_help();
        else
            printf("xtradb-host %s, storage engine interface %u.%u\n", XTRADB_VERSION, XT_ABI_MAJOR, XT_ABI_MINOR);
        options_free(&options);
        return 0;
    }
    if (result == 0)
        result = start_log(&options);
    if (result != 0) {
        options_free(&options);
        return result;
    }
    raise_open_files();
    has_signals = start_signals(&signals);
    result = host_start(&h, &options);
    if (result == 0)
        result = options.sessions != NULL ? run_sessions(&h, &options) : run_client(&h, &options);
    if (!host_stop(&h) && result == 0)
        result = 1;
    if (has_signals)
        stop_signals(signals);
    options_free(&options);
    return result;
}
