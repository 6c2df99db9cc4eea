#include "describe.h"

#include <string.h>

#define COLUMNS_MAX 24
#define PARTS_MAX 4

/* A column as it is written below: what xt_column wants follows from it. */
typedef struct source_column {
    const char *name;
    uint8_t type;
    uint16_t length; /* characters; digits of a DECIMAL */
    uint8_t decimals;
    bool nullable;
} source_column;

typedef struct source_key {
    const char *name;
    uint8_t parts[PARTS_MAX];
    uint8_t count;
} source_key;

typedef struct source_table {
    const char *name;
    source_column columns[COLUMNS_MAX];
    source_key keys[2];
} source_table;

#define TINY(name) { name, XT_TYPE_TINY, 0, 0, false }
#define SMALL(name) { name, XT_TYPE_SHORT, 0, 0, false }
#define INT(name) { name, XT_TYPE_LONG, 0, 0, false }
#define CHAR(name, n) { name, XT_TYPE_STRING, n, 0, false }
#define VARCHAR(name, n) { name, XT_TYPE_VARCHAR, n, 0, false }
#define MONEY(name, digits, scale) { name, XT_TYPE_NEWDECIMAL, digits, scale, false }
#define TIME(name) { name, XT_TYPE_DATETIME2, 0, 0, false }
#define ADDRESS(p) VARCHAR(p "_street_1", 20), VARCHAR(p "_street_2", 20), VARCHAR(p "_city", 20), \
                   CHAR(p "_state", 2), CHAR(p "_zip", 9)

static const source_table sources[TABLE_COUNT] = {
    [WAREHOUSE] = { "warehouse",
        { INT("w_id"), VARCHAR("w_name", 10), ADDRESS("w"), MONEY("w_tax", 4, 4),
          MONEY("w_ytd", 12, 2) },
        { { "PRIMARY", { W_ID }, 1 } } },
    [DISTRICT] = { "district",
        { INT("d_w_id"), TINY("d_id"), VARCHAR("d_name", 10), ADDRESS("d"), MONEY("d_tax", 4, 4),
          MONEY("d_ytd", 12, 2), INT("d_next_o_id") },
        { { "PRIMARY", { D_W_ID, D_ID }, 2 } } },
    [CUSTOMER] = { "customer",
        { INT("c_w_id"), TINY("c_d_id"), INT("c_id"), VARCHAR("c_first", 16), CHAR("c_middle", 2),
          VARCHAR("c_last", 16), ADDRESS("c"), CHAR("c_phone", 16), TIME("c_since"),
          CHAR("c_credit", 2), MONEY("c_credit_lim", 12, 2), MONEY("c_discount", 4, 4),
          MONEY("c_balance", 12, 2), MONEY("c_ytd_payment", 12, 2), INT("c_payment_cnt"),
          INT("c_delivery_cnt"), VARCHAR("c_data", 500) },
        { { "PRIMARY", { C_W_ID, C_D_ID, C_ID }, 3 },
          { "customer_by_name", { C_W_ID, C_D_ID, C_LAST, C_FIRST }, 4 } } },
    [HISTORY] = { "history",
        { INT("h_c_id"), TINY("h_c_d_id"), INT("h_c_w_id"), TINY("h_d_id"), INT("h_w_id"),
          TIME("h_date"), MONEY("h_amount", 6, 2), VARCHAR("h_data", 24) },
        { { NULL, { 0 }, 0 } } },
    [NEW_ORDERS] = { "new_orders", { INT("no_w_id"), TINY("no_d_id"), INT("no_o_id") },
        { { "PRIMARY", { NO_W_ID, NO_D_ID, NO_O_ID }, 3 } } },
    [ORDERS] = { "orders",
        { INT("o_w_id"), TINY("o_d_id"), INT("o_id"), INT("o_c_id"), TIME("o_entry_d"),
          { "o_carrier_id", XT_TYPE_TINY, 0, 0, true }, TINY("o_ol_cnt"), TINY("o_all_local") },
        { { "PRIMARY", { O_W_ID, O_D_ID, O_ID }, 3 },
          { "orders_by_customer", { O_W_ID, O_D_ID, O_C_ID, O_ID }, 4 } } },
    [ORDER_LINE] = { "order_line",
        { INT("ol_w_id"), TINY("ol_d_id"), INT("ol_o_id"), TINY("ol_number"), INT("ol_i_id"),
          INT("ol_supply_w_id"), { "ol_delivery_d", XT_TYPE_DATETIME2, 0, 0, true },
          TINY("ol_quantity"), MONEY("ol_amount", 6, 2), CHAR("ol_dist_info", 24) },
        { { "PRIMARY", { OL_W_ID, OL_D_ID, OL_O_ID, OL_NUMBER }, 4 } } },
    [ITEM] = { "item",
        { INT("i_id"), INT("i_im_id"), VARCHAR("i_name", 24), MONEY("i_price", 5, 2),
          VARCHAR("i_data", 50) },
        { { "PRIMARY", { I_ID }, 1 } } },
    [STOCK] = { "stock",
        { INT("s_w_id"), INT("s_i_id"), SMALL("s_quantity"), CHAR("s_dist_01", 24),
          CHAR("s_dist_02", 24), CHAR("s_dist_03", 24), CHAR("s_dist_04", 24),
          CHAR("s_dist_05", 24), CHAR("s_dist_06", 24), CHAR("s_dist_07", 24),
          CHAR("s_dist_08", 24), CHAR("s_dist_09", 24), CHAR("s_dist_10", 24), INT("s_ytd"),
          INT("s_order_cnt"), INT("s_remote_cnt"), VARCHAR("s_data", 50) },
        { { "PRIMARY", { S_W_ID, S_I_ID }, 2 } } },
    [LOADED] = { "loaded",
        { INT("l_id"), INT("l_warehouses"), INT("l_items"), INT("l_customers"),
          INT("l_last_name_c") },
        { { "PRIMARY", { L_ID }, 1 } } },
};

typedef struct made_table {
    xt_table_def def;
    xt_column columns[COLUMNS_MAX];
    xt_key keys[2];
    xt_key_part parts[2][PARTS_MAX];
} made_table;

static made_table tables[TABLE_COUNT];

/* Bytes of a DECIMAL: nine digits in four bytes on either side of the point. */
static uint32_t decimal_bytes(unsigned digits)
{
    static const uint8_t rest[] = { 0, 1, 1, 2, 2, 3, 3, 4, 4 };

    return digits / 9 * 4 + rest[digits % 9];
}

static uint32_t bytes_of(const source_column *c)
{
    switch (c->type) {
    case XT_TYPE_TINY: return 1;
    case XT_TYPE_SHORT: return 2;
    case XT_TYPE_LONG: return 4;
    case XT_TYPE_DATETIME2: return 5;
    case XT_TYPE_NEWDECIMAL:
        return decimal_bytes((unsigned)c->length - c->decimals) + decimal_bytes(c->decimals);
    default: return c->length;
    }
}

static void make_column(xt_column *to, const source_column *from, uint32_t *offset, unsigned *nulls)
{
    bool text = from->type == XT_TYPE_STRING || from->type == XT_TYPE_VARCHAR;

    to->name = from->name;
    to->type = from->type;
    to->octets = bytes_of(from);
    to->length_bytes = from->type == XT_TYPE_VARCHAR ? (from->length < 256 ? 1 : 2) : 0;
    to->length = to->octets + to->length_bytes;
    to->collation = text ? LATIN1_BIN : 63;
    to->flags = from->nullable ? 0 : XT_COLUMN_NOT_NULL;
    to->null_mask = from->nullable ? (uint8_t)(1u << (*nulls)++) : 0;
    to->offset = *offset;
    to->decimals = from->decimals;
    to->precision = from->type == XT_TYPE_NEWDECIMAL ? from->length : 0;
    *offset += to->length;
}

static void make_table(made_table *to, const source_table *from)
{
    uint32_t offset = 1; /* one null byte */
    unsigned nulls = 0, columns = 0, keys = 0;

    for (; columns < COLUMNS_MAX && from->columns[columns].name != NULL; columns++)
        make_column(&to->columns[columns], &from->columns[columns], &offset, &nulls);
    for (; keys < 2 && from->keys[keys].name != NULL; keys++) {
        const source_key *key = &from->keys[keys];

        for (unsigned p = 0; p < key->count; p++)
            to->parts[keys][p] =
                (xt_key_part){ .column = key->parts[p],
                               .length = to->columns[key->parts[p]].octets };
        to->keys[keys] = (xt_key){ .name = key->name, .parts = to->parts[keys],
                                   .parts_count = key->count,
                                   .flags = keys == 0 ? XT_KEY_PRIMARY | XT_KEY_UNIQUE : 0 };
    }
    to->def = (xt_table_def){ .struct_size = sizeof to->def, .columns = to->columns,
                              .keys = to->keys, .columns_count = columns, .keys_count = keys,
                              .row_length = offset, .null_bytes = 1 };
}

void describe_tables(void)
{
    for (unsigned t = 0; t < TABLE_COUNT; t++)
        make_table(&tables[t], &sources[t]);
}

const xt_table_def *table_definition(enum table table)
{
    return &tables[table].def;
}

const char *table_name(enum table table)
{
    return sources[table].name;
}

static void print_column(FILE *to, const source_column *c)
{
    static const char *const names[] = { [XT_TYPE_TINY] = "TINYINT", [XT_TYPE_SHORT] = "SMALLINT",
                                         [XT_TYPE_LONG] = "INT", [XT_TYPE_DATETIME2] = "DATETIME" };

    fprintf(to, "  %s ", c->name);
    if (c->type == XT_TYPE_NEWDECIMAL)
        fprintf(to, "DECIMAL(%u,%u)", c->length, c->decimals);
    else if (c->type == XT_TYPE_STRING || c->type == XT_TYPE_VARCHAR)
        fprintf(to, "%s(%u)", c->type == XT_TYPE_STRING ? "CHAR" : "VARCHAR", c->length);
    else
        fputs(names[c->type], to);
    fputs(c->nullable ? " DEFAULT NULL" : " NOT NULL", to);
}

static void print_keys(FILE *to, const source_table *table)
{
    for (unsigned k = 0; k < 2 && table->keys[k].name != NULL; k++) {
        const source_key *key = &table->keys[k];

        if (k == 0)
            fputs(",\n  PRIMARY KEY (", to);
        else
            fprintf(to, ",\n  KEY %s (", key->name);
        for (unsigned p = 0; p < key->count; p++)
            fprintf(to, "%s%s", p > 0 ? ", " : "", table->columns[key->parts[p]].name);
        putc(')', to);
    }
}

void print_schema(FILE *to)
{
    fprintf(to, "CREATE DATABASE IF NOT EXISTS `%s`;\nUSE `%s`;\n", DATABASE, DATABASE);
    for (unsigned t = 0; t < TABLE_COUNT; t++) {
        fprintf(to, "CREATE TABLE %s (\n", sources[t].name);
        for (unsigned c = 0; c < tables[t].def.columns_count; c++) {
            if (c > 0)
                fputs(",\n", to);
            print_column(to, &sources[t].columns[c]);
        }
        print_keys(to, &sources[t]);
        fputs("\n) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_bin;\n", to);
    }
}
