/*
 * Random statements and rollbacks on the builtin heap engine, against a model that is a plain array.
 *
 *     heap_fuzz SEED STEPS
 *
 * After every statement the engine's rows, in the order of each key, forwards and backwards, are those of the
 * model. Prints "ok", or the seed and what differs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "host.h"

#define ROWS_MAX 64

struct row {
    int id, u, v; /* u: -1 is NULL */
    char text[24];
};

struct model {
    struct row rows[ROWS_MAX];
    size_t count;
};

static uint64_t random_state;
static uint64_t seed;

static unsigned pick(unsigned below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % below;
}

static void fail(const char *what, int result)
{
    printf("seed %llu: %s (%d)\n", (unsigned long long)seed, what, result);
    exit(1);
}

#define CHECK(condition, what)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail(what, __LINE__);                                                                  \
    } while (0)

/* t (id INT PRIMARY KEY, u INT UNIQUE, v INT, text BLOB, KEY (v DESC, id)) */
static table_def *make_def(void)
{
    static struct column columns[4];
    static struct key keys[3];
    static struct key_part parts[4];
    static table_def def;

    columns[0] = (struct column){ .name = "id", .type = CT_INT, .flags = COL_NOT_NULL,
                                  .collation = 63 };
    columns[1] = (struct column){ .name = "u", .type = CT_INT, .collation = 63 };
    columns[2] = (struct column){ .name = "v", .type = CT_INT, .flags = COL_NOT_NULL,
                                  .collation = 63 };
    columns[3] = (struct column){ .name = "text", .type = CT_BLOB, .length = 2, .collation = 63 };
    parts[0].col = 0;
    parts[1].col = 1;
    parts[2] = (struct key_part){ .col = 2, .descending = true };
    parts[3].col = 0;
    keys[0] = (struct key){ .name = "PRIMARY", .flags = KEY_UNIQUE | KEY_PRIMARY, .part_count = 1,
                            .parts = &parts[0] };
    keys[1] = (struct key){ .name = "u", .flags = KEY_UNIQUE, .part_count = 1, .parts = &parts[1] };
    keys[2] = (struct key){ .name = "v", .part_count = 2, .parts = &parts[2] };
    def = (table_def){ .db = "d", .name = "t", .column_count = 4, .columns = columns,
                       .key_count = 3, .keys = keys, .primary_key = 0, .autoinc_col = UINT32_MAX,
                       .collation = 63 };
    tabledef_layout(&def);
    return &def;
}

static void put_int(uint8_t *at, int value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)((unsigned)value >> (8 * i));
}

static int get_int(const uint8_t *at)
{
    return (int)((unsigned)at[0] | (unsigned)at[1] << 8 | (unsigned)at[2] << 16 |
                 (unsigned)at[3] << 24);
}

static void encode(const table_def *def, const struct row *row, uint8_t *image)
{
    memset(image, 0, def->row_length);
    image[0] = 1;
    put_int(image + def->columns[0].offset, row->id);
    if (row->u < 0)
        image[def->columns[1].null_byte] |= def->columns[1].null_mask;
    else
        put_int(image + def->columns[1].offset, row->u);
    put_int(image + def->columns[2].offset, row->v);
    rec_set_blob(&def->columns[3], image, (const uint8_t *)row->text, (uint32_t)strlen(row->text));
}

static void decode(const table_def *def, const uint8_t *image, struct row *row)
{
    uint32_t length;
    const uint8_t *text = rec_blob(&def->columns[3], image, &length);

    memset(row, 0, sizeof *row);
    row->id = get_int(image + def->columns[0].offset);
    row->u = rec_is_null(&def->columns[1], image) ? -1 : get_int(image + def->columns[1].offset);
    row->v = get_int(image + def->columns[2].offset);
    CHECK(length < sizeof row->text, "a BLOB is longer than any that was written");
    memcpy(row->text, text, length);
}

static int by_id(const void *a, const void *b)
{
    return ((const struct row *)a)->id - ((const struct row *)b)->id;
}

static int by_v(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return x->v != y->v ? y->v - x->v : x->id - y->id;
}

static bool same(const struct row *a, const struct row *b)
{
    return a->id == b->id && a->u == b->u && a->v == b->v && strcmp(a->text, b->text) == 0;
}

/* Reads the whole table by a key in both directions and compares. */
static void compare(se_table *t, const struct model *model, uint32_t key,
                    int (*order)(const void *, const void *))
{
    const struct se_ops *ops = t->eng->ops;
    struct model sorted = *model;
    uint8_t image[256];
    struct row row;

    qsort(sorted.rows, sorted.count, sizeof sorted.rows[0], order);
    for (size_t i = 0; i <= sorted.count; i++) {
        int result = i == 0 ? ops->index_first(t, key, image) : ops->index_next(t, image);

        CHECK((result == SE_END_OF_FILE) == (i == sorted.count), "number of rows, forwards");
        if (result != 0)
            break;
        decode(t->def, image, &row);
        CHECK(same(&row, &sorted.rows[i]), "a row, forwards");
    }
    for (size_t i = 0; i <= sorted.count; i++) {
        int result = i == 0 ? ops->index_last(t, key, image) : ops->index_prev(t, image);

        CHECK((result == SE_END_OF_FILE) == (i == sorted.count), "number of rows, backwards");
        if (result != 0)
            break;
        decode(t->def, image, &row);
        CHECK(same(&row, &sorted.rows[sorted.count - 1 - i]), "a row, backwards");
    }
    ops->index_end(t);
}

static void compare_all(se_table *t, void *es, const struct model *model)
{
    char message[200];

    CHECK(t->eng->ops->statement_start(t->eng, es) == 0, "statement_start");
    CHECK(t->eng->ops->table_start(t, SE_LOCK_NONE, NULL) == 0, "table_start");
    compare(t, model, 0, by_id);
    compare(t, model, 2, by_v);
    if (t->eng->ops->check_table(t, true, message, sizeof message) != 0)
        fail(message, 0);
    t->eng->ops->statement_end(t->eng, es, false);
}

/* The key that a row would violate in the model, other than by the row `self`; -1: none. */
static int model_duplicate(const struct model *model, const struct row *row, const struct row *self)
{
    for (size_t i = 0; i < model->count; i++)
        if (&model->rows[i] != self && model->rows[i].id == row->id)
            return 0;
    for (size_t i = 0; i < model->count; i++)
        if (&model->rows[i] != self && row->u >= 0 && model->rows[i].u == row->u)
            return 1;
    return -1;
}

static struct row random_row(void)
{
    struct row row = { .id = (int)pick(40), .u = (int)pick(30) - 5, .v = (int)pick(6) };

    row.u = row.u < 0 ? -1 : row.u;
    snprintf(row.text, sizeof row.text, "%.*s", (int)pick(20), "abcdefghijklmnopqrst");
    return row;
}

static bool change_one(se_table *t, struct model *model)
{
    const struct se_ops *ops = t->eng->ops;
    struct row row = random_row(), *self = NULL;
    uint8_t old[256], image[256], key[8];
    unsigned what = pick(3);
    int expected;

    if (what == 0 && model->count < ROWS_MAX) {
        encode(t->def, &row, image);
        expected = model_duplicate(model, &row, NULL);
        int result = ops->write_row(t, image);
        CHECK(result == (expected < 0 ? 0 : SE_FOUND_DUPP_KEY), "result of an insert");
        CHECK(expected < 0 || ops->error_key(t) == (uint32_t)expected, "key of a duplicate");
        if (expected < 0)
            model->rows[model->count++] = row;
        return expected < 0;
    }
    if (model->count == 0)
        return true;
    self = &model->rows[pick((unsigned)model->count)];
    put_int(key, self->id);
    CHECK(ops->index_read(t, 0, old, key, 4, FIND_EXACT) == 0, "a row that is there is found");
    if (what == 1) {
        CHECK(ops->delete_row(t, old) == 0, "a delete");
        *self = model->rows[--model->count];
        return true;
    }
    encode(t->def, &row, image);
    expected = model_duplicate(model, &row, self);
    int result = ops->update_row(t, old, image);
    CHECK(result == (expected < 0 ? 0 : SE_FOUND_DUPP_KEY), "result of an update");
    if (expected < 0)
        *self = row;
    return expected < 0;
}

int main(int argc, char **argv)
{
    host h = { .datadir = "." };
    engine *e = heap_engine_new(&h);
    table_def *def = make_def();
    struct model now = { 0 }, before = { 0 }, saved = { 0 };
    bool in_trx = false, has_savepoint = false;
    se_table *t;
    void *es;

    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    random_state = seed * 2 + 1;
    CHECK(e->ops->session_open(e, NULL, &es) == 0, "session_open");
    CHECK(e->ops->create_table(e, es, def) == 0, "create_table");
    CHECK(e->ops->open(e, es, def, &t) == 0, "open");
    for (long steps = argc > 2 ? atol(argv[2]) : 10000; steps > 0; steps--) {
        struct model start = now;
        bool good = true;

        if (!in_trx && pick(3) == 0) {
            e->ops->begin(e, es, SE_REPEATABLE_READ, false, false);
            in_trx = true;
            before = now;
        }
        if (in_trx && pick(8) == 0) {
            e->ops->savepoint(e, es, "s");
            has_savepoint = true;
            saved = now;
        }
        e->ops->statement_start(e, es);
        CHECK(e->ops->table_start(t, SE_LOCK_EXCLUSIVE, NULL) == 0, "table_start");
        for (unsigned n = pick(4) + 1; good && n > 0; n--)
            good = change_one(t, &now);
        e->ops->statement_end(e, es, !good);
        now = good ? now : start;
        compare_all(t, es, &now);
        if (!in_trx) {
            CHECK(e->ops->commit(e, es) == 0, "commit");
        } else if (has_savepoint && pick(5) == 0) {
            CHECK(e->ops->rollback_to(e, es, "S") == 0, "rollback to a savepoint");
            now = saved;
        } else if (pick(5) == 0) {
            bool commit = pick(2) == 0;

            CHECK((commit ? e->ops->commit : e->ops->rollback)(e, es) == 0, "end of transaction");
            now = commit ? now : before;
            in_trx = has_savepoint = false;
        }
        compare_all(t, es, &now);
        if (!in_trx)
            e->ops->commit(e, es);
    }
    e->ops->close(t);
    e->ops->session_close(e, es);
    heap_engine_free(e);
    free(def->defaults);
    puts("ok");
    return 0;
}
