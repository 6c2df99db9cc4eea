/* Order-Status and Stock-Level (clauses 2.6 and 2.8): the two that only read. */
#include <stdlib.h>

#include "transact.h"

#define ORDERS_LOOKED_AT 20

xt_status order_status(client *c, const input *in)
{
    key_image key;
    xt_status status;
    int customer, order;

    TRY(find_customer(c, &in->customer, &customer));
    TRY(statement_next(c));
    TRY(bind_table(c, CUSTOMER, READ,
                   COLUMN(C_BALANCE) | COLUMN(C_FIRST) | COLUMN(C_MIDDLE) | COLUMN(C_LAST), 0));
    key = KEY(c, CUSTOMER, PRIMARY, in->customer.warehouse, in->customer.district, customer);
    TRY(read_key(c, CUSTOMER, PRIMARY, &key, XT_FIND_EXACT));

    TRY(statement_next(c));
    TRY(bind_table(c, ORDERS, READ, COLUMN(O_ID) | COLUMN(O_ENTRY_D) | COLUMN(O_CARRIER_ID), 0));
    key = KEY(c, ORDERS, ORDERS_BY_CUSTOMER, in->customer.warehouse, in->customer.district,
              customer);
    TRY(read_key(c, ORDERS, ORDERS_BY_CUSTOMER, &key, XT_FIND_PREFIX_LAST));
    order = (int)number(c, ORDERS, O_ID);

    TRY(statement_next(c));
    TRY(bind_table(c, ORDER_LINE, READ, COLUMN(OL_I_ID) | COLUMN(OL_SUPPLY_W_ID) |
                   COLUMN(OL_QUANTITY) | COLUMN(OL_AMOUNT) | COLUMN(OL_DELIVERY_D), 0));
    key = KEY(c, ORDER_LINE, PRIMARY, in->customer.warehouse, in->customer.district, order);
    status = read_key(c, ORDER_LINE, PRIMARY, &key, XT_FIND_EXACT);
    while (status == XT_OK)
        status = read_next_same(c, ORDER_LINE, &key);
    return status == XT_END_OF_FILE ? XT_OK : status;
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* The items of the district's last orders, each once. */
static xt_status collect_items(client *c, const input *in, int next_order, int *items, int *count)
{
    key_image key = KEY(c, ORDER_LINE, PRIMARY, in->warehouse, in->district,
                        next_order - ORDERS_LOOKED_AT);
    key_image district = KEY(c, ORDER_LINE, PRIMARY, in->warehouse, in->district);
    xt_status status;
    int found = 0;

    TRY(statement_next(c));
    TRY(bind_table(c, ORDER_LINE, READ,
                   COLUMN(OL_W_ID) | COLUMN(OL_D_ID) | COLUMN(OL_O_ID) | COLUMN(OL_I_ID), 0));
    status = read_key(c, ORDER_LINE, PRIMARY, &key, XT_FIND_KEY_OR_NEXT);
    while (status == XT_OK && number(c, ORDER_LINE, OL_D_ID) == in->district &&
           number(c, ORDER_LINE, OL_W_ID) == in->warehouse &&
           number(c, ORDER_LINE, OL_O_ID) < next_order && found < ORDERS_LOOKED_AT * LINES_MAX) {
        items[found++] = (int)number(c, ORDER_LINE, OL_I_ID);
        status = read_next_same(c, ORDER_LINE, &district);
    }
    if (status != XT_OK && status != XT_END_OF_FILE)
        return status;
    qsort(items, (size_t)found, sizeof *items, by_number);
    *count = 0;
    for (int i = 0; i < found; i++)
        if (i == 0 || items[i] != items[i - 1])
            items[(*count)++] = items[i];
    return XT_OK;
}

xt_status stock_level(client *c, const input *in)
{
    key_image district = KEY(c, DISTRICT, PRIMARY, in->warehouse, in->district);
    int items[ORDERS_LOOKED_AT * LINES_MAX], count, low = 0;

    TRY(statement_next(c));
    TRY(bind_table(c, DISTRICT, READ, COLUMN(D_NEXT_O_ID), 0));
    TRY(read_key(c, DISTRICT, PRIMARY, &district, XT_FIND_EXACT));
    TRY(collect_items(c, in, (int)number(c, DISTRICT, D_NEXT_O_ID), items, &count));
    TRY(bind_table(c, STOCK, READ, COLUMN(S_QUANTITY), 0)); /* the same statement: a join */
    for (int i = 0; i < count; i++) {
        key_image key = KEY(c, STOCK, PRIMARY, in->warehouse, items[i]);

        TRY(read_key(c, STOCK, PRIMARY, &key, XT_FIND_EXACT));
        low += number(c, STOCK, S_QUANTITY) < in->threshold;
    }
    return XT_OK;
}
