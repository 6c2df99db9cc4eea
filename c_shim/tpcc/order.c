/* New-Order (clause 2.4): the backbone of the workload. */
#include <string.h>

#include "transact.h"

/* SELECT d_next_o_id, d_tax ... FOR UPDATE; UPDATE district SET d_next_o_id = d_next_o_id + 1 */
static xt_status take_order_number(client *c, const input *in, int *order)
{
    key_image key = KEY(c, DISTRICT, PRIMARY, in->warehouse, in->district);

    TRY(statement_next(c));
    TRY(bind_table(c, DISTRICT, CHANGE, COLUMN(D_TAX) | COLUMN(D_NEXT_O_ID), COLUMN(D_NEXT_O_ID)));
    TRY(read_key(c, DISTRICT, PRIMARY, &key, XT_FIND_EXACT));
    *order = (int)number(c, DISTRICT, D_NEXT_O_ID);
    copy_row(c, DISTRICT);
    set_number(c, DISTRICT, D_NEXT_O_ID, *order + 1);
    return update_to_next(c, DISTRICT);
}

static xt_status read_prices(client *c, const input *in)
{
    key_image warehouse = KEY(c, WAREHOUSE, PRIMARY, in->warehouse);
    key_image customer =
        KEY(c, CUSTOMER, PRIMARY, in->warehouse, in->district, in->customer.number);

    TRY(statement_next(c));
    TRY(bind_table(c, WAREHOUSE, READ, COLUMN(W_TAX), 0));
    TRY(read_key(c, WAREHOUSE, PRIMARY, &warehouse, XT_FIND_EXACT));
    TRY(statement_next(c));
    TRY(bind_table(c, CUSTOMER, READ, COLUMN(C_DISCOUNT) | COLUMN(C_LAST) | COLUMN(C_CREDIT), 0));
    return read_key(c, CUSTOMER, PRIMARY, &customer, XT_FIND_EXACT);
}

static xt_status insert_order(client *c, const input *in, int order)
{
    TRY(statement_next(c));
    TRY(bind_table(c, ORDERS, CHANGE, ALL_COLUMNS, ALL_COLUMNS));
    set_number(c, ORDERS, O_W_ID, in->warehouse);
    set_number(c, ORDERS, O_D_ID, in->district);
    set_number(c, ORDERS, O_ID, order);
    set_number(c, ORDERS, O_C_ID, in->customer.number);
    set_number(c, ORDERS, O_ENTRY_D, datetime_now());
    put_null(c->handles[ORDERS].next, column_at(c, ORDERS, O_CARRIER_ID));
    set_number(c, ORDERS, O_OL_CNT, in->line_count);
    set_number(c, ORDERS, O_ALL_LOCAL, in->all_local);
    TRY(insert_next(c, ORDERS));
    TRY(statement_next(c));
    TRY(bind_table(c, NEW_ORDERS, CHANGE, ALL_COLUMNS, ALL_COLUMNS));
    set_number(c, NEW_ORDERS, NO_W_ID, in->warehouse);
    set_number(c, NEW_ORDERS, NO_D_ID, in->district);
    set_number(c, NEW_ORDERS, NO_O_ID, order);
    return insert_next(c, NEW_ORDERS);
}

/* Takes the goods from the stock, or lets it be filled up. */
static xt_status take_from_stock(client *c, const input *in, const order_line_input *line)
{
    unsigned district = S_DIST_01 + (unsigned)in->district - 1;
    uint64_t changes = COLUMN(S_QUANTITY) | COLUMN(S_YTD) | COLUMN(S_ORDER_CNT) |
                       COLUMN(S_REMOTE_CNT);
    key_image key = KEY(c, STOCK, PRIMARY, line->warehouse, line->item);
    int64_t quantity;

    TRY(statement_next(c));
    TRY(bind_table(c, STOCK, CHANGE, changes | COLUMN(S_DATA) | COLUMN(district), changes));
    TRY(read_key(c, STOCK, PRIMARY, &key, XT_FIND_EXACT));
    quantity = number(c, STOCK, S_QUANTITY) - line->quantity;
    copy_row(c, STOCK);
    set_number(c, STOCK, S_QUANTITY, quantity >= 10 ? quantity : quantity + 91);
    set_number(c, STOCK, S_YTD, number(c, STOCK, S_YTD) + line->quantity);
    set_number(c, STOCK, S_ORDER_CNT, number(c, STOCK, S_ORDER_CNT) + 1);
    if (line->warehouse != in->warehouse)
        set_number(c, STOCK, S_REMOTE_CNT, number(c, STOCK, S_REMOTE_CNT) + 1);
    return update_to_next(c, STOCK);
}

static xt_status insert_line(client *c, const input *in, int order, int at, int64_t amount)
{
    const order_line_input *line = &in->lines[at];
    unsigned district = S_DIST_01 + (unsigned)in->district - 1;
    uint32_t length;
    const char *info = get_text(c->handles[STOCK].row, column_at(c, STOCK, district), &length);

    TRY(statement_next(c));
    TRY(bind_table(c, ORDER_LINE, CHANGE, ALL_COLUMNS, ALL_COLUMNS));
    set_number(c, ORDER_LINE, OL_W_ID, in->warehouse);
    set_number(c, ORDER_LINE, OL_D_ID, in->district);
    set_number(c, ORDER_LINE, OL_O_ID, order);
    set_number(c, ORDER_LINE, OL_NUMBER, at + 1);
    set_number(c, ORDER_LINE, OL_I_ID, line->item);
    set_number(c, ORDER_LINE, OL_SUPPLY_W_ID, line->warehouse);
    put_null(c->handles[ORDER_LINE].next, column_at(c, ORDER_LINE, OL_DELIVERY_D));
    set_number(c, ORDER_LINE, OL_QUANTITY, line->quantity);
    set_number(c, ORDER_LINE, OL_AMOUNT, amount);
    set_text(c, ORDER_LINE, OL_DIST_INFO, info, length);
    return insert_next(c, ORDER_LINE);
}

xt_status new_order(client *c, const input *in, bool *item_is_unused)
{
    int order;

    TRY(read_prices(c, in));
    TRY(take_order_number(c, in, &order));
    TRY(insert_order(c, in, order));
    for (int i = 0; i < in->line_count; i++) {
        const order_line_input *line = &in->lines[i];
        key_image item = KEY(c, ITEM, PRIMARY, line->item);
        xt_status status;

        TRY(statement_next(c));
        TRY(bind_table(c, ITEM, READ, COLUMN(I_NAME) | COLUMN(I_PRICE) | COLUMN(I_DATA), 0));
        status = read_key(c, ITEM, PRIMARY, &item, XT_FIND_EXACT);
        *item_is_unused = status == XT_KEY_NOT_FOUND && in->has_unused_item;
        if (*item_is_unused)
            return XT_OK;
        TRY(status);
        TRY(take_from_stock(c, in, line));
        TRY(insert_line(c, in, order, i, line->quantity * number(c, ITEM, I_PRICE)));
    }
    return XT_OK;
}
