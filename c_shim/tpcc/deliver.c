/* Delivery (clause 2.7): the oldest new order of each of the ten districts. */
#include "transact.h"

/* SELECT no_o_id ... ORDER BY no_o_id LIMIT 1 FOR UPDATE; DELETE. 0: the district has none. */
static xt_status take_oldest(client *c, const input *in, int district, int *order)
{
    key_image key = KEY(c, NEW_ORDERS, PRIMARY, in->warehouse, district);
    xt_status status;

    TRY(statement_next(c));
    TRY(bind_table(c, NEW_ORDERS, CHANGE, ALL_COLUMNS, ALL_COLUMNS));
    status = read_key(c, NEW_ORDERS, PRIMARY, &key, XT_FIND_EXACT);
    *order = 0;
    if (status == XT_KEY_NOT_FOUND)
        return XT_OK;
    TRY(status);
    *order = (int)number(c, NEW_ORDERS, NO_O_ID);
    return delete_row(c, NEW_ORDERS);
}

static xt_status set_carrier(client *c, const input *in, int district, int order, int *customer)
{
    key_image key = KEY(c, ORDERS, PRIMARY, in->warehouse, district, order);

    TRY(statement_next(c));
    TRY(bind_table(c, ORDERS, CHANGE, COLUMN(O_C_ID) | COLUMN(O_CARRIER_ID), COLUMN(O_CARRIER_ID)));
    TRY(read_key(c, ORDERS, PRIMARY, &key, XT_FIND_EXACT));
    *customer = (int)number(c, ORDERS, O_C_ID);
    copy_row(c, ORDERS);
    set_number(c, ORDERS, O_CARRIER_ID, in->carrier);
    return update_to_next(c, ORDERS);
}

static xt_status date_lines(client *c, const input *in, int district, int order, int64_t *sum)
{
    key_image key = KEY(c, ORDER_LINE, PRIMARY, in->warehouse, district, order);
    int64_t now = datetime_now();
    xt_status status;

    TRY(statement_next(c));
    TRY(bind_table(c, ORDER_LINE, CHANGE, COLUMN(OL_AMOUNT) | COLUMN(OL_DELIVERY_D),
                   COLUMN(OL_DELIVERY_D)));
    status = read_key(c, ORDER_LINE, PRIMARY, &key, XT_FIND_EXACT);
    for (*sum = 0; status == XT_OK; status = read_next_same(c, ORDER_LINE, &key)) {
        *sum += number(c, ORDER_LINE, OL_AMOUNT);
        copy_row(c, ORDER_LINE);
        set_number(c, ORDER_LINE, OL_DELIVERY_D, now);
        TRY(update_to_next(c, ORDER_LINE));
    }
    return status == XT_END_OF_FILE ? XT_OK : status;
}

static xt_status charge_customer(client *c, const input *in, int district, int customer, int64_t sum)
{
    uint64_t changes = COLUMN(C_BALANCE) | COLUMN(C_DELIVERY_CNT);
    key_image key = KEY(c, CUSTOMER, PRIMARY, in->warehouse, district, customer);

    TRY(statement_next(c));
    TRY(bind_table(c, CUSTOMER, CHANGE, changes, changes));
    TRY(read_key(c, CUSTOMER, PRIMARY, &key, XT_FIND_EXACT));
    copy_row(c, CUSTOMER);
    set_number(c, CUSTOMER, C_BALANCE, number(c, CUSTOMER, C_BALANCE) + sum);
    set_number(c, CUSTOMER, C_DELIVERY_CNT, number(c, CUSTOMER, C_DELIVERY_CNT) + 1);
    return update_to_next(c, CUSTOMER);
}

xt_status delivery(client *c, const input *in)
{
    for (int district = 1; district <= DISTRICTS; district++) {
        int order, customer;
        int64_t sum;

        TRY(take_oldest(c, in, district, &order));
        if (order == 0)
            continue;
        TRY(set_carrier(c, in, district, order, &customer));
        TRY(date_lines(c, in, district, order, &sum));
        TRY(charge_customer(c, in, district, customer, sum));
    }
    return XT_OK;
}
