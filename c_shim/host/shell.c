#include "shell.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#ifdef HAVE_LIBEDIT
#include <editline/readline.h>
#endif

#include "splitter.h"

#define SOURCE_DEPTH_MAX 16

struct shell {
    session *s;
    output *o;
    shell_settings settings;
    splitter split;
    unsigned depth; /* of source commands */
    atomic_bool quit;
    atomic_bool running;
};

struct command {
    const char *name;
    char letter;
    const char *help;
};

static const struct command commands[] = {
    { "clear", 'c', "Clear the current input statement." },
    { "delimiter", 'd', "Set statement delimiter." },
    { "ego", 'G', "Send command to server, display result vertically." },
    { "exit", 'q', "Exit. Same as quit." },
    { "go", 'g', "Send command to server." },
    { "help", 'h', "Display this help." },
    { "nowarning", 'w', "Don't show warnings after every statement." },
    { "quit", 'q', "Quit." },
    { "source", '.', "Execute an SQL script file. Takes a file name as an argument." },
    { "status", 's', "Show session and database." },
    { "system", '!', "Execute a system shell command." },
    { "use", 'u', "Use another database. Takes database name as argument." },
    { "warnings", 'W', "Show warnings after every statement." },
};

#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

shell *shell_new(session *s, output *o, const shell_settings *settings)
{
    shell *sh = calloc(1, sizeof *sh);

    if (sh == NULL)
        abort();
    sh->s = s;
    sh->o = o;
    sh->settings = *settings;
    splitter_init(&sh->split);
    return sh;
}

void shell_free(shell *sh)
{
    splitter_free(&sh->split);
    free(sh);
}

bool shell_quits(const shell *sh)
{
    return sh->quit;
}

void shell_stop(shell *sh, bool quit)
{
    if (quit)
        sh->quit = true;
    if (sh->running)
        session_interrupt(sh->s);
}

/* ------------------------------------------------------------------------------ statements */

static void run(shell *sh, const char *sql, size_t length, unsigned line, bool vertical)
{
    output_begin(sh->o, line, vertical);
    sh->running = true;
    session_run(sh->s, sql, length, output_sink(sh->o));
    sh->running = false;
}

/* Prints rows (level, code, text) as "Note (Code 1051): Unknown table". */
static void print_condition(sink *k, const struct sink_value *values, size_t count)
{
    (void)k;
    if (count >= 3)
        printf("%.*s (Code %.*s): %.*s\n", (int)values[0].len, values[0].ptr, (int)values[1].len,
               values[1].ptr, (int)values[2].len, values[2].ptr);
}

static void ignore_columns(sink *k, const struct sink_column *columns, size_t count)
{
    (void)k, (void)columns, (void)count;
}

static void ignore_end(sink *k, uint32_t warnings)
{
    (void)k, (void)warnings;
}

static void ignore_ok(sink *k, const struct sink_ok *ok)
{
    (void)k, (void)ok;
}

static void ignore_error(sink *k, unsigned code, const char *sqlstate, const char *message)
{
    (void)k, (void)code, (void)sqlstate, (void)message;
}

static void show_warnings(shell *sh)
{
    static const char sql[] = "SHOW WARNINGS";
    sink conditions = { .columns = ignore_columns, .row = print_condition, .end = ignore_end,
                        .ok = ignore_ok, .error = ignore_error };

    if (sh->settings.show_warnings && output_warnings(sh->o) > 0)
        session_run(sh->s, sql, sizeof sql - 1, &conditions);
    fflush(stdout);
}

/* True when input should be read on. */
static bool goes_on(const shell *sh, unsigned error)
{
    return !sh->quit && (error == 0 || sh->settings.interactive || sh->settings.force);
}

/* -------------------------------------------------------------------------------- commands */

static bool complain(const shell *sh, unsigned line, const char *text)
{
    fflush(stdout);
    if (sh->settings.interactive)
        fprintf(stderr, "ERROR: %s\n", text);
    else
        fprintf(stderr, "ERROR at line %u: %s\n", line, text);
    return goes_on(sh, 1);
}

/* The argument of a command: without blanks, quotes and delimiter around it. */
static char *argument(const shell *sh, const char *text)
{
    size_t length, delimiter = strlen(sh->split.delimiter);
    char *copy;

    while (isspace((unsigned char)*text))
        text++;
    length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    if (length >= delimiter &&
        strncmp(text + length - delimiter, sh->split.delimiter, delimiter) == 0)
        length -= delimiter;
    if (length >= 2 && strchr("'\"`", *text) != NULL && text[length - 1] == *text) {
        text++;
        length -= 2;
    }
    copy = strndup(text, length);
    if (copy == NULL)
        abort();
    return copy;
}

static bool set_delimiter(shell *sh, const char *text, unsigned number)
{
    size_t length;

    while (isspace((unsigned char)*text))
        text++;
    for (length = 0; text[length] != '\0' && !isspace((unsigned char)text[length]);)
        length++;
    if (length == 0 || length >= sizeof sh->split.delimiter)
        return complain(sh, number, "DELIMITER must be followed by a 'delimiter' character or string");
    if (memchr(text, '\\', length) != NULL)
        return complain(sh, number, "DELIMITER cannot contain a backslash character");
    memcpy(sh->split.delimiter, text, length);
    sh->split.delimiter[length] = '\0';
    return true;
}

static bool source(shell *sh, const char *text, unsigned number)
{
    char *path = argument(sh, text);
    FILE *file;
    bool good = false;

    if (sh->depth >= SOURCE_DEPTH_MAX) {
        free(path);
        return complain(sh, number, "Too many nested source commands");
    }
    file = fopen(path, "re");
    if (file == NULL) {
        char why[PATH_MAX + 100];

        snprintf(why, sizeof why, "Failed to open file '%s', error: %d", path, errno);
        good = complain(sh, number, why);
    } else {
        splitter outer = sh->split;

        splitter_init(&sh->split);
        sh->depth++;
        good = shell_run_stream(sh, file);
        sh->depth--;
        splitter_free(&sh->split);
        sh->split = outer;
        fclose(file);
    }
    free(path);
    return good;
}

static bool use(shell *sh, const char *text, unsigned line, bool announce)
{
    char *database = argument(sh, text), *sql;
    int length = 0;

    sql = malloc(2 * strlen(database) + 16);
    if (sql == NULL)
        abort();
    length = sprintf(sql, "USE `");
    for (const char *p = database; *p != '\0'; p++) {
        if (*p == '`')
            sql[length++] = '`';
        sql[length++] = *p;
    }
    sql[length++] = '`';
    output_begin(sh->o, line, false);
    output_quiet(sh->o, true);
    sh->running = true;
    session_run(sh->s, sql, (size_t)length, output_sink(sh->o));
    sh->running = false;
    output_quiet(sh->o, false);
    if (announce && output_error(sh->o) == 0)
        output_line(sh->o, "Database changed");
    free(sql);
    free(database);
    return goes_on(sh, output_error(sh->o));
}

bool shell_use(shell *sh, const char *database)
{
    return use(sh, database, 0, false);
}

static bool run_statement(shell *sh)
{
    splitter *split = &sh->split;
    unsigned error = 0, line = split->line;

    if (split->length > 4 && strncasecmp(split->text, "use", 3) == 0 &&
        isspace((unsigned char)split->text[3])) {
        bool good = use(sh, split->text + 3, line, true);

        splitter_clear(split);
        return good;
    }
    if (split->length > 0) {
        if (sh->settings.verbose > 0)
            printf("--------------\n%s\n--------------\n\n", split->text);
        run(sh, split->text, split->length, line, split->vertical);
        error = output_error(sh->o);
        show_warnings(sh);
    } else if (sh->settings.interactive) {
        fputs("ERROR: No query specified\n\n", stderr);
    }
    splitter_clear(split);
    return goes_on(sh, error);
}

static void help(void)
{
    puts("List of all client commands:\n"
         "Note that all text commands must be first on line and end with ';'");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("%-9s (\\%c) %s\n", commands[i].name, commands[i].letter, commands[i].help);
    putchar('\n');
}

/* `rest` is what follows the command on its line. */
static bool run_command(shell *sh, char letter, const char *rest, unsigned line)
{
    char unknown[32];

    switch (letter) {
    case 'q':
        sh->quit = true;
        return true;
    case 'c':
        splitter_clear(&sh->split);
        return true;
    case 'd':
        return set_delimiter(sh, rest, line);
    case '.':
        return source(sh, rest, line);
    case 'u':
        return use(sh, rest, line, true);
    case '!':
        fflush(stdout);
        return system(rest) == 0 || complain(sh, line, "The system command failed");
    case 'h':
    case '?':
        help();
        return true;
    case 's':
        printf("--------------\nxtradb-host\n\nConnection id:\t\t%u\nCurrent database:\t%s\n"
               "--------------\n\n", session_id(sh->s), session_db(sh->s));
        return true;
    case 'W':
    case 'w':
        sh->settings.show_warnings = letter == 'W';
        output_line(sh->o, letter == 'W' ? "Show warnings enabled." : "Show warnings disabled.");
        return true;
    default:
        snprintf(unknown, sizeof unknown, "Unknown command '\\%c'.", letter);
        return complain(sh, line, unknown);
    }
}

/* Commands whose argument is the rest of the line. */
static bool takes_line(char letter)
{
    return letter == 'd' || letter == '.' || letter == 'u' || letter == '!';
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t;")] == '\0';
}

/*
 * A command by its word at the start of a statement: 0 if there is none. Words that SQL could begin
 * with do not exist but for "use" and "help", which SQL leaves to the client as well.
 */
static char word_command(const shell *sh, const char *line, const char **rest)
{
    size_t word = 0;

    while (isspace((unsigned char)*line))
        line++;
    while (isalpha((unsigned char)line[word]))
        word++;
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const char *after = line + word;

        if (strlen(commands[i].name) != word || strncasecmp(commands[i].name, line, word) != 0)
            continue;
        if (takes_line(commands[i].letter)) {
            const char *end = strstr(after, sh->split.delimiter);

            if (!isspace((unsigned char)*after) && *after != '\0')
                return 0;
            /* USE with more statements behind it on the line is for the parser */
            if (commands[i].letter == 'u' && end != NULL && !is_blank(end + 1))
                return 0;
        } else {
            while (isspace((unsigned char)*after))
                after++;
            if (strncmp(after, sh->split.delimiter, strlen(sh->split.delimiter)) == 0)
                after += strlen(sh->split.delimiter);
            if (*after != '\0')
                return 0;
        }
        *rest = after;
        return commands[i].letter;
    }
    return 0;
}

/* ----------------------------------------------------------------------------------- lines */

static bool feed_line(shell *sh, const char *line, unsigned number)
{
    bool good = true;

    if (splitter_is_empty(&sh->split)) {
        const char *rest;
        char letter = word_command(sh, line, &rest);

        if (letter != 0 && letter != 'g' && letter != 'G')
            return run_command(sh, letter, rest, number);
    }
    do {
        switch (splitter_feed(&sh->split, &line, number)) {
        case SPLIT_STATEMENT:
            good = run_statement(sh);
            break;
        case SPLIT_COMMAND:
            good = run_command(sh, sh->split.command, line, number);
            if (takes_line(sh->split.command))
                return good;
            break;
        case SPLIT_MORE:
            break;
        }
    } while (good && !sh->quit && *line != '\0');
    return good;
}

/* What stands at the end without a delimiter is a statement too, except at a prompt. */
static bool finish(shell *sh)
{
    splitter *split = &sh->split;

    while (split->length > 0 && isspace((unsigned char)split->text[split->length - 1]))
        split->text[--split->length] = '\0';
    return sh->quit || split->length == 0 || run_statement(sh);
}

bool shell_run_stream(shell *sh, FILE *input)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    unsigned number = 0;
    bool good = true;

    while (good && !sh->quit && (length = getline(&line, &room, input)) >= 0) {
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            line[--length] = '\0';
        good = feed_line(sh, line, ++number);
    }
    free(line);
    return good && finish(sh);
}

bool shell_run_string(shell *sh, const char *text)
{
    FILE *stream = fmemopen((char *)(uintptr_t)text, strlen(text), "r");
    bool good;

    if (*text == '\0')
        return true;
    if (stream == NULL)
        abort();
    good = shell_run_stream(sh, stream);
    fclose(stream);
    return good;
}

/* ---------------------------------------------------------------------------------- prompt */

static void make_prompt(const shell *sh, char *prompt, size_t size)
{
    const char *database = session_db(sh->s);

    if (sh->split.quote != 0)
        snprintf(prompt, size, "    %c> ", sh->split.quote);
    else if (sh->split.comment != 0)
        snprintf(prompt, size, "   /*> ");
    else if (!splitter_is_empty(&sh->split))
        snprintf(prompt, size, "    -> ");
    else if (sh->settings.prompt != NULL)
        snprintf(prompt, size, "%s", sh->settings.prompt);
    else
        snprintf(prompt, size, "xtradb [%s]> ", *database != '\0' ? database : "(none)");
}

static const char *history_path(char *path, size_t size)
{
    const char *named = getenv("XTRADB_HISTFILE"), *home = getenv("HOME");

    if (named != NULL)
        snprintf(path, size, "%s", named);
    else
        snprintf(path, size, "%s/.xtradb_history", home != NULL ? home : ".");
    return path;
}

#ifdef HAVE_LIBEDIT

static void history_begin(void)
{
    char path[PATH_MAX];

    using_history();
    read_history(history_path(path, sizeof path));
}

static void history_end(void)
{
    char path[PATH_MAX];

    write_history(history_path(path, sizeof path));
}

static char *read_line(const char *prompt)
{
    char *line = readline(prompt);

    if (line != NULL && *line != '\0')
        add_history(line);
    return line;
}

#else

static void history_begin(void)
{
    char path[PATH_MAX];

    (void)history_path(path, sizeof path); /* no library, no history */
}

static void history_end(void)
{
}

static char *read_line(const char *prompt)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;

    fputs(prompt, stdout);
    fflush(stdout);
    length = getline(&line, &room, stdin);
    if (length < 0) {
        free(line);
        return NULL;
    }
    while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
        line[--length] = '\0';
    return line;
}

#endif

bool shell_run_prompt(shell *sh)
{
    unsigned number = 0;

    history_begin();
    while (!sh->quit) {
        char prompt[512], *line;

        make_prompt(sh, prompt, sizeof prompt);
        line = read_line(prompt);
        if (line == NULL)
            break;
        feed_line(sh, line, ++number);
        free(line);
    }
    puts("Bye");
    history_end();
    return true;
}
