#include "output.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct cell {
    size_t offset; /* in `bytes` */
    size_t length;
    bool null;
};

struct output {
    sink sink; /* first: the session sees only this */
    FILE *out, *err;
    output_style style;
    enum output_form form; /* of the running statement */
    unsigned line;
    bool quiet;
    struct timespec started;
    unsigned error, warnings;
    size_t rows;

    /* the result being collected */
    struct sink_column *columns; /* names are ours */
    size_t column_count;
    struct cell *cells;
    size_t cell_count, cell_room;
    char *bytes;
    size_t byte_count, byte_room;
};

static void *grow(void *memory, size_t *room, size_t wanted, size_t size)
{
    if (wanted <= *room)
        return memory;
    *room = wanted > 2 * *room ? wanted : 2 * *room;
    memory = realloc(memory, *room * size);
    if (memory == NULL)
        abort();
    return memory;
}

static void forget_result(output *o)
{
    for (size_t i = 0; i < o->column_count; i++)
        free((char *)(uintptr_t)o->columns[i].name);
    free(o->columns);
    o->columns = NULL;
    o->column_count = o->cell_count = o->byte_count = 0;
}

/* ------------------------------------------------------------------------------- widths */

static size_t code_point_width(uint32_t c)
{
    if (c >= 0x300 && c <= 0x36f)
        return 0;
    if ((c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) ||
        (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
        (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
        (c >= 0xffe0 && c <= 0xffe6) || (c >= 0x1f300 && c <= 0x1faff) ||
        (c >= 0x20000 && c <= 0x3fffd))
        return 2;
    return 1;
}

/* Length of the UTF-8 sequence at `s` and its code point; 1 and U+FFFD when it is malformed. */
static size_t decode(const unsigned char *s, size_t length, uint32_t *code_point)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3
               : s[0] < 0xf5 ? 4 : 0;
    uint32_t c = n == 1 ? s[0] : n == 2 ? s[0] & 0x1fu : n == 3 ? s[0] & 0x0fu : s[0] & 0x07u;

    if (n == 0 || n > length) {
        *code_point = 0xfffd;
        return 1;
    }
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            *code_point = 0xfffd;
            return 1;
        }
        c = c << 6 | (s[i] & 0x3fu);
    }
    *code_point = c;
    return n;
}

size_t output_width(const char *bytes, size_t length)
{
    const unsigned char *s = (const unsigned char *)bytes;
    size_t width = 0;

    for (size_t i = 0; i < length;) {
        uint32_t code_point;

        i += decode(s + i, length - i, &code_point);
        width += code_point_width(code_point);
    }
    return width;
}

/* ------------------------------------------------------------------------------- pieces */

static void print_repeated(FILE *out, char c, size_t count)
{
    while (count-- > 0)
        putc(c, out);
}

/* Bytes as they are, but NUL as a blank, so that a terminal keeps its columns. */
static void print_plain(FILE *out, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        putc(bytes[i] == '\0' ? ' ' : bytes[i], out);
}

static void print_escaped(FILE *out, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        switch (bytes[i]) {
        case '\0':
            fputs("\\0", out);
            break;
        case '\t':
            fputs("\\t", out);
            break;
        case '\n':
            fputs("\\n", out);
            break;
        case '\\':
            fputs("\\\\", out);
            break;
        default:
            putc(bytes[i], out);
        }
    }
}

static void cell_text(const output *o, const struct cell *cell, const char **text, size_t *length)
{
    *text = cell->null ? "NULL" : o->bytes + cell->offset;
    *length = cell->null ? 4 : cell->length;
}

/* -------------------------------------------------------------------------- the three forms */

static void print_ruler(const output *o, const size_t *widths)
{
    for (size_t c = 0; c < o->column_count; c++) {
        putc('+', o->out);
        print_repeated(o->out, '-', widths[c] + 2);
    }
    fputs("+\n", o->out);
}

static void print_boxed(const output *o, const char *text, size_t length, size_t width, bool right)
{
    size_t used = output_width(text, length);
    size_t padding = used < width ? width - used : 0;

    fputs("| ", o->out);
    if (right)
        print_repeated(o->out, ' ', padding);
    print_plain(o->out, text, length);
    if (!right)
        print_repeated(o->out, ' ', padding);
    putc(' ', o->out);
}

static size_t *column_widths(const output *o)
{
    size_t *widths = calloc(o->column_count + 1, sizeof *widths);

    if (widths == NULL)
        abort();
    for (size_t c = 0; c < o->column_count; c++) {
        if (o->style.names)
            widths[c] = output_width(o->columns[c].name, strlen(o->columns[c].name));
        if (!o->columns[c].not_null && widths[c] < 4)
            widths[c] = 4; /* room for NULL, whether there is one or not */
    }
    for (size_t i = 0; i < o->cell_count; i++) {
        const char *text;
        size_t length, width;

        cell_text(o, &o->cells[i], &text, &length);
        width = output_width(text, length);
        if (width > widths[i % o->column_count])
            widths[i % o->column_count] = width;
    }
    return widths;
}

static void print_table(const output *o)
{
    size_t *widths = column_widths(o);

    print_ruler(o, widths);
    if (o->style.names) {
        for (size_t c = 0; c < o->column_count; c++)
            print_boxed(o, o->columns[c].name, strlen(o->columns[c].name), widths[c], false);
        fputs("|\n", o->out);
        print_ruler(o, widths);
    }
    for (size_t i = 0; i < o->cell_count; i++) {
        size_t c = i % o->column_count;
        const char *text;
        size_t length;

        cell_text(o, &o->cells[i], &text, &length);
        print_boxed(o, text, length, widths[c], o->columns[c].numeric);
        if (c + 1 == o->column_count)
            fputs("|\n", o->out);
    }
    print_ruler(o, widths);
    free(widths);
}

static void print_vertical(const output *o)
{
    size_t name_width = 0;

    for (size_t c = 0; c < o->column_count; c++) {
        size_t width = output_width(o->columns[c].name, strlen(o->columns[c].name));

        name_width = width > name_width ? width : name_width;
    }
    for (size_t i = 0; i < o->cell_count; i++) {
        size_t c = i % o->column_count;
        const char *name = o->columns[c].name, *text;
        size_t length;

        if (c == 0)
            fprintf(o->out,
                    "*************************** %zu. row ***************************\n",
                    i / o->column_count + 1);
        cell_text(o, &o->cells[i], &text, &length);
        if (o->style.names) {
            print_repeated(o->out, ' ', name_width - output_width(name, strlen(name)));
            fprintf(o->out, "%s: ", name);
        }
        print_plain(o->out, text, length);
        putc('\n', o->out);
    }
}

static void print_batch_names(const output *o)
{
    for (size_t c = 0; c < o->column_count; c++)
        fprintf(o->out, "%s%s", c > 0 ? "\t" : "", o->columns[c].name);
    putc('\n', o->out);
}

static void print_batch_row(const output *o, const struct sink_value *values, size_t count)
{
    for (size_t c = 0; c < count; c++) {
        if (c > 0)
            putc('\t', o->out);
        if (values[c].null)
            fputs("NULL", o->out);
        else if (o->style.raw)
            fwrite(values[c].ptr, 1, values[c].len, o->out);
        else
            print_escaped(o->out, values[c].ptr, values[c].len);
    }
    putc('\n', o->out);
}

/* ------------------------------------------------------------------------------- the sink */

static output *of(sink *k)
{
    return (output *)k;
}

static void take_columns(sink *k, const struct sink_column *columns, size_t count)
{
    output *o = of(k);

    forget_result(o);
    o->rows = 0;
    o->columns = calloc(count + 1, sizeof *o->columns);
    if (o->columns == NULL)
        abort();
    o->column_count = count;
    for (size_t c = 0; c < count; c++) {
        o->columns[c] = columns[c];
        o->columns[c].name = strdup(columns[c].name);
        if (o->columns[c].name == NULL)
            abort();
    }
}

static void collect_row(output *o, const struct sink_value *values, size_t count)
{
    o->cells = grow(o->cells, &o->cell_room, o->cell_count + count, sizeof *o->cells);
    for (size_t c = 0; c < count; c++) {
        size_t length = values[c].null ? 0 : values[c].len;

        o->bytes = grow(o->bytes, &o->byte_room, o->byte_count + length + 1, 1);
        if (length > 0)
            memcpy(o->bytes + o->byte_count, values[c].ptr, length);
        o->cells[o->cell_count++] = (struct cell){
            .offset = o->byte_count, .length = length, .null = values[c].null
        };
        o->byte_count += length;
    }
}

static void take_row(sink *k, const struct sink_value *values, size_t count)
{
    output *o = of(k);

    if (o->form == OUTPUT_BATCH) {
        if (o->rows == 0 && o->style.names)
            print_batch_names(o);
        print_batch_row(o, values, count);
    } else {
        collect_row(o, values, count);
    }
    o->rows++;
}

static void print_timing(const output *o)
{
    struct timespec now;

    if (o->style.timing) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        fprintf(o->out, " (%.3f sec)",
                (double)(now.tv_sec - o->started.tv_sec) +
                (double)(now.tv_nsec - o->started.tv_nsec) / 1e9);
    }
}

static void print_warning_count(const output *o, unsigned warnings)
{
    if (warnings > 0)
        fprintf(o->out, ", %u warning%s", warnings, warnings == 1 ? "" : "s");
}

static void take_end(sink *k, uint32_t warnings)
{
    output *o = of(k);

    o->warnings = warnings;
    if (o->rows > 0 && o->form == OUTPUT_TABLE)
        print_table(o);
    else if (o->rows > 0 && o->form == OUTPUT_VERTICAL)
        print_vertical(o);
    if (o->style.counts) {
        if (o->rows == 0)
            fputs("Empty set", o->out);
        else
            fprintf(o->out, "%zu row%s in set", o->rows, o->rows == 1 ? "" : "s");
        print_warning_count(o, warnings);
        print_timing(o);
        fputs("\n\n", o->out);
    }
    forget_result(o);
    fflush(o->out);
}

static void take_ok(sink *k, const struct sink_ok *ok)
{
    output *o = of(k);

    o->warnings = ok->warnings;
    if (!o->style.counts || o->quiet)
        return;
    fprintf(o->out, "Query OK, %llu row%s affected", (unsigned long long)ok->affected,
            ok->affected == 1 ? "" : "s");
    print_warning_count(o, ok->warnings);
    print_timing(o);
    if (ok->info != NULL && *ok->info != '\0')
        fprintf(o->out, "\n%s", ok->info);
    fputs("\n\n", o->out);
    fflush(o->out);
}

static void take_error(sink *k, unsigned code, const char *sqlstate, const char *message)
{
    output *o = of(k);

    o->error = code;
    forget_result(o);
    fflush(o->out);
    if (o->style.line_numbers && o->line > 0)
        fprintf(o->err, "ERROR %u (%s) at line %u: %s\n", code, sqlstate, o->line, message);
    else
        fprintf(o->err, "ERROR %u (%s): %s\n", code, sqlstate, message);
    fflush(o->err);
}

output *output_new(FILE *out, FILE *err, const output_style *style)
{
    output *o = calloc(1, sizeof *o);

    if (o == NULL)
        abort();
    o->sink = (sink){ .columns = take_columns, .row = take_row, .end = take_end, .ok = take_ok,
                      .error = take_error };
    o->out = out;
    o->err = err;
    o->style = *style;
    return o;
}

void output_free(output *o)
{
    if (o == NULL)
        return;
    forget_result(o);
    free(o->cells);
    free(o->bytes);
    free(o);
}

sink *output_sink(output *o)
{
    return &o->sink;
}

void output_begin(output *o, unsigned line, bool vertical)
{
    o->line = line;
    o->form = vertical ? OUTPUT_VERTICAL : o->style.form;
    o->error = o->warnings = 0;
    o->rows = 0;
    clock_gettime(CLOCK_MONOTONIC, &o->started);
}

void output_quiet(output *o, bool on)
{
    o->quiet = on;
}

void output_line(output *o, const char *text)
{
    if (o->style.counts)
        fprintf(o->out, "%s\n", text);
}

unsigned output_error(const output *o)
{
    return o->error;
}

unsigned output_warnings(const output *o)
{
    return o->warnings;
}
