/* CREATE TABLE: columns, keys, table options. */
#include <string.h>
#include <strings.h>

#include "exec.h"
#include "parser.h"

static void p_key_parts(struct parser *p, struct key_spec *k)
{
    p_expect_op(p, "(");
    do {
        struct key_part_spec part = {0};
        part.column = p_name(p);
        if (p_accept_op(p, "(")) {
            part.length = p_number(p);
            if (!part.length)
                p_error(p, 1391, part.column);
            p_expect_op(p, ")");
        }
        part.descending = p_accept(p, "DESC");
        if (!part.descending)
            p_accept(p, "ASC");
        P_PUSH(p, k->parts, k->part_count) = part;
    } while (p_accept_op(p, ",") && !p->failed);
    p_expect_op(p, ")");
}

static void p_using(struct parser *p)
{
    if (p_accept(p, "USING") && !p_accept(p, "BTREE"))
        p_expect(p, "HASH"); /* InnoDB makes a B-tree of it, too */
}

static void p_key_options(struct parser *p, struct key_spec *k)
{
    for (;;) {
        if (p_is(p, "USING")) {
            p_using(p);
        } else if (p_accept(p, "COMMENT")) {
            k->comment = p_text(p);
        } else if (p_accept(p, "KEY_BLOCK_SIZE")) {
            p_accept_op(p, "=");
            p_number(p);
        } else if (!p_accept2(p, "NOT", "IGNORED")) {
            return;
        }
    }
}

/* KEY, UNIQUE, PRIMARY KEY, CONSTRAINT … ; false: not a key definition. */
static bool p_key(struct parser *p, struct create_table *ct)
{
    struct key_spec k = {0};
    if (p_accept(p, "CONSTRAINT"))
        if (!p_is(p, "PRIMARY") && !p_is(p, "UNIQUE") && !p_is(p, "FOREIGN") && !p_is(p, "CHECK"))
            k.name = p_name(p);
    if (p_accept2(p, "PRIMARY", "KEY")) {
        k.flags = KEY_PRIMARY | KEY_UNIQUE;
    } else if (p_accept(p, "UNIQUE")) {
        k.flags = KEY_UNIQUE;
        if (!p_accept(p, "KEY"))
            p_accept(p, "INDEX");
    } else if (p_is(p, "FOREIGN")) {
        p_error(p, 1235, "FOREIGN KEY");
        return true;
    } else if (p_is(p, "CHECK")) {
        p_error(p, 1235, "CHECK");
        return true;
    } else if (p_is(p, "FULLTEXT") || p_is(p, "SPATIAL")) {
        p_error(p, 1235, p_is(p, "SPATIAL") ? "SPATIAL KEY" : "FULLTEXT KEY");
        return true;
    } else if (!p_accept(p, "KEY") && !p_accept(p, "INDEX")) {
        return false;
    }
    if (!p_is_op(p, "(") && !p_is(p, "USING"))
        k.name = p_name(p);
    p_using(p);
    p_key_parts(p, &k);
    p_key_options(p, &k);
    P_PUSH(p, ct->keys, ct->key_count) = k;
    return true;
}

void p_add_keys(struct parser *p, struct stmt *st)
{
    st->kind = STMT_ADD_KEYS;
    st->create = arena_alloc(p->arena, sizeof *st->create);
    do {
        if (!p_key(p, st->create))
            p_error(p, 1235, "ALTER TABLE … ADD of anything but a key");
    } while (!p->failed && p_accept_op(p, ",") && (p_expect(p, "ADD"), true));
}

void p_create_index(struct parser *p, struct stmt *st, bool unique)
{
    struct key_spec k = {.flags = unique ? KEY_UNIQUE : 0};
    st->kind = STMT_ADD_KEYS;
    st->create = arena_alloc(p->arena, sizeof *st->create);
    k.name = p_name(p);
    p_using(p);
    p_expect(p, "ON");
    P_PUSH(p, st->tables, st->table_count) = p_table_name(p);
    p_key_parts(p, &k);
    p_key_options(p, &k);
    P_PUSH(p, st->create->keys, st->create->key_count) = k;
}

static bool p_starts_key(struct parser *p)
{
    static const char *const words[] = {"CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK",
                                        "FULLTEXT", "SPATIAL", "KEY", "INDEX"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (p_is(p, words[i]))
            return true;
    return false;
}

/* An option that is kept as text for SHOW CREATE TABLE. */
static bool p_kept_option(struct parser *p, struct create_table *ct)
{
    static const char *const words[] = {
        "STATS_PERSISTENT", "STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES", "CHECKSUM", "MIN_ROWS",
        "MAX_ROWS", "AVG_ROW_LENGTH", "PACK_KEYS", "DELAY_KEY_WRITE", "PAGE_CHECKSUM",
        "TRANSACTIONAL"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!p_accept(p, words[i]))
            continue;
        p_accept_op(p, "=");
        ct->options = arena_printf(p->arena, "%s %s=%s", ct->options ? ct->options : "", words[i],
                                   p->token.text);
        p_advance(p);
        return true;
    }
    return false;
}

static bool p_charset_option(struct parser *p, struct create_table *ct)
{
    bool collate;
    p_accept(p, "DEFAULT");
    if ((collate = p_accept(p, "COLLATE")) || p_accept2(p, "CHARACTER", "SET") ||
        p_accept(p, "CHARSET")) {
        p_accept_op(p, "=");
        *(collate ? &ct->collate : &ct->charset) = p_name_or_text(p);
        return true;
    }
    return false;
}

static void p_table_option(struct parser *p, struct create_table *ct)
{
    const char **text = p_accept(p, "ENGINE") || p_accept(p, "TYPE") ? &ct->engine
                        : p_accept(p, "COMMENT")                     ? &ct->comment
                        : p_accept(p, "ROW_FORMAT")                  ? &ct->row_format
                                                                     : NULL;
    uint64_t *number = text ? NULL
                       : p_accept(p, "AUTO_INCREMENT") ? &ct->auto_increment
                       : p_accept(p, "KEY_BLOCK_SIZE") ? &ct->key_block_size
                                                       : NULL;
    if (text || number) {
        p_accept_op(p, "=");
        if (text)
            *text = p_name_or_text(p);
        else
            *number = p_number(p);
        return;
    }
    if (p_kept_option(p, ct) || p_charset_option(p, ct))
        return;
    if (p_is(p, "PARTITION"))
        p_error(p, 1235, "PARTITION BY");
    else if (p_is(p, "DATA") || p_is(p, "INDEX") || p_is(p, "PAGE_COMPRESSED") || p_is(p, "ENCRYPTED") ||
             p_is(p, "WITH") || p_is(p, "SELECT") || p_is(p, "AS"))
        p_error(p, 1235, arena_printf(p->arena, "CREATE TABLE … %s", p->token.text));
    else
        p_syntax_error(p);
}

static void p_column(struct parser *p, struct create_table *ct)
{
    struct column_spec *c = arena_alloc(p->arena, sizeof *c);
    c->name = p_name(p);
    p_column_spec(p, c, ct);
    P_PUSH(p, ct->columns, ct->column_count) = *c;
}

void p_create_table(struct parser *p, struct stmt *st)
{
    struct create_table *ct = st->create;
    if (p_accept(p, "IF")) {
        p_expect(p, "NOT");
        p_expect(p, "EXISTS");
        ct->if_not_exists = true;
    }
    ct->table = p_table_name(p);
    if (p_accept(p, "LIKE")) {
        ct->like = p_table_name(p);
        return;
    }
    p_expect_op(p, "(");
    if (p_accept(p, "LIKE")) {
        ct->like = p_table_name(p);
        p_expect_op(p, ")");
        return;
    }
    do {
        if (!(p_starts_key(p) && p_key(p, ct)))
            p_column(p, ct);
    } while (p_accept_op(p, ",") && !p->failed);
    p_expect_op(p, ")");
    while (!p_at_end(p) && !p->failed) {
        p_table_option(p, ct);
        p_accept_op(p, ",");
    }
}
