#include "splitter.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void splitter_init(splitter *s)
{
    *s = (splitter){ .delimiter = ";" };
    s->room = 256;
    s->text = malloc(s->room);
    if (s->text == NULL)
        abort();
    s->text[0] = '\0';
}

void splitter_free(splitter *s)
{
    free(s->text);
    *s = (splitter){ 0 };
}

void splitter_clear(splitter *s)
{
    s->length = 0;
    s->text[0] = '\0';
    s->quote = s->comment = 0;
    s->vertical = false;
}

bool splitter_is_empty(const splitter *s)
{
    return s->length == 0;
}

static void add(splitter *s, const char *bytes, size_t count, unsigned line)
{
    if (s->length == 0) {
        if (count == 1 && isspace((unsigned char)*bytes))
            return;
        s->line = line;
    }
    if (s->length + count + 1 > s->room) {
        s->room = 2 * (s->length + count + 1);
        s->text = realloc(s->text, s->room);
        if (s->text == NULL)
            abort();
    }
    memcpy(s->text + s->length, bytes, count);
    s->length += count;
    s->text[s->length] = '\0';
}

/* Bytes of `p` that belong together inside quotes or a comment; closes them where they end. */
static size_t inside(splitter *s, const char *p)
{
    if (s->quote != 0) {
        if (*p == '\\' && s->quote != '`' && p[1] != '\0')
            return 2;
        if (*p == s->quote)
            s->quote = 0; /* a doubled quote opens again at once */
        return 1;
    }
    if (p[0] == '*' && p[1] == '/') {
        s->comment = 0;
        return 2;
    }
    if (s->comment == '!' && (*p == '\'' || *p == '"' || *p == '`'))
        s->quote = *p;
    return 1;
}

static bool is_line_comment(const char *p)
{
    return *p == '#' ||
           (p[0] == '-' && p[1] == '-' && (p[2] == '\0' || isspace((unsigned char)p[2])));
}

/* Removes blanks from the end of a complete statement. */
static enum split_event complete(splitter *s)
{
    while (s->length > 0 && isspace((unsigned char)s->text[s->length - 1]))
        s->text[--s->length] = '\0';
    return SPLIT_STATEMENT;
}

/* A backslash outside quotes: \g and \G end the statement, others are commands. */
static enum split_event backslash(splitter *s, const char **line)
{
    s->command = (*line)[1];
    *line += s->command != '\0' ? 2 : 1;
    if (s->command == 'g' || s->command == 'G') {
        s->vertical = s->command == 'G';
        return complete(s);
    }
    return SPLIT_COMMAND;
}

enum split_event splitter_feed(splitter *s, const char **line, unsigned number)
{
    const char *p = *line;
    size_t delimiter = strlen(s->delimiter);

    while (*p != '\0') {
        size_t used = 1;

        if (s->quote != 0 || s->comment != 0) {
            used = inside(s, p);
        } else if (strncmp(p, s->delimiter, delimiter) == 0) {
            *line = p + delimiter;
            return complete(s);
        } else if (*p == '\\') {
            *line = p;
            return backslash(s, line);
        } else if (is_line_comment(p)) {
            break; /* not sent */
        } else if (*p == '\'' || *p == '"' || *p == '`') {
            s->quote = *p;
        } else if (p[0] == '/' && p[1] == '*') {
            bool code = p[2] == '!' || (p[2] == 'M' && p[3] == '!');

            s->comment = code ? '!' : '*';
            used = 2;
        }
        add(s, p, used, number);
        p += used;
    }
    *line = p + strlen(p);
    add(s, "\n", 1, number);
    return SPLIT_MORE;
}
