/* Payment (clause 2.5). */
#include <stdio.h>
#include <string.h>

#include "transact.h"

/* UPDATE ... SET ytd = ytd + amount */
static xt_status add_to_ytd(client *c, enum table table, const key_image *key, unsigned name,
                            unsigned ytd, int64_t amount)
{
    TRY(statement_next(c));
    TRY(bind_table(c, table, CHANGE, COLUMN(name) | COLUMN(ytd), COLUMN(ytd)));
    TRY(read_key(c, table, PRIMARY, key, XT_FIND_EXACT));
    copy_row(c, table);
    set_number(c, table, ytd, number(c, table, ytd) + amount);
    return update_to_next(c, table);
}

/* Customers of bad credit have their last payments written before their data. */
static void note_in_data(client *c, const input *in, int customer)
{
    char data[600];
    uint32_t length;
    const char *old = get_text(c->handles[CUSTOMER].row, column_at(c, CUSTOMER, C_DATA), &length);
    int used = snprintf(data, sizeof data, "%d %d %d %d %d %lld.%02lld | ", customer,
                        in->customer.district, in->customer.warehouse, in->district, in->warehouse,
                        (long long)in->amount / 100, (long long)in->amount % 100);

    memcpy(data + used, old, length); /* at most 500 of 600 */
    set_text(c, CUSTOMER, C_DATA, data, (uint32_t)used + length);
}

static xt_status pay_customer(client *c, const input *in, int customer)
{
    uint64_t changes = COLUMN(C_BALANCE) | COLUMN(C_YTD_PAYMENT) | COLUMN(C_PAYMENT_CNT);
    key_image key =
        KEY(c, CUSTOMER, PRIMARY, in->customer.warehouse, in->customer.district, customer);
    uint32_t length;

    TRY(statement_next(c));
    TRY(bind_table(c, CUSTOMER, CHANGE, ALL_COLUMNS, changes | COLUMN(C_DATA)));
    TRY(read_key(c, CUSTOMER, PRIMARY, &key, XT_FIND_EXACT));
    copy_row(c, CUSTOMER);
    set_number(c, CUSTOMER, C_BALANCE, number(c, CUSTOMER, C_BALANCE) - in->amount);
    set_number(c, CUSTOMER, C_YTD_PAYMENT, number(c, CUSTOMER, C_YTD_PAYMENT) + in->amount);
    set_number(c, CUSTOMER, C_PAYMENT_CNT, number(c, CUSTOMER, C_PAYMENT_CNT) + 1);
    if (memcmp(get_text(c->handles[CUSTOMER].row, column_at(c, CUSTOMER, C_CREDIT), &length), "BC",
               2) == 0)
        note_in_data(c, in, customer);
    return update_to_next(c, CUSTOMER);
}

static xt_status insert_history(client *c, const input *in, int customer)
{
    uint32_t w_length, d_length;
    const char *w = get_text(c->handles[WAREHOUSE].row, column_at(c, WAREHOUSE, W_NAME), &w_length);
    const char *d = get_text(c->handles[DISTRICT].row, column_at(c, DISTRICT, D_NAME), &d_length);
    char data[64];
    int length = snprintf(data, sizeof data, "%.*s    %.*s", (int)w_length, w, (int)d_length, d);

    TRY(statement_next(c));
    TRY(bind_table(c, HISTORY, CHANGE, ALL_COLUMNS, ALL_COLUMNS));
    set_number(c, HISTORY, H_C_ID, customer);
    set_number(c, HISTORY, H_C_D_ID, in->customer.district);
    set_number(c, HISTORY, H_C_W_ID, in->customer.warehouse);
    set_number(c, HISTORY, H_D_ID, in->district);
    set_number(c, HISTORY, H_W_ID, in->warehouse);
    set_number(c, HISTORY, H_DATE, datetime_now());
    set_number(c, HISTORY, H_AMOUNT, in->amount);
    set_text(c, HISTORY, H_DATA, data, (uint32_t)length);
    return insert_next(c, HISTORY);
}

xt_status payment(client *c, const input *in)
{
    key_image warehouse = KEY(c, WAREHOUSE, PRIMARY, in->warehouse);
    key_image district = KEY(c, DISTRICT, PRIMARY, in->warehouse, in->district);
    int customer;

    TRY(add_to_ytd(c, WAREHOUSE, &warehouse, W_NAME, W_YTD, in->amount));
    TRY(add_to_ytd(c, DISTRICT, &district, D_NAME, D_YTD, in->amount));
    TRY(find_customer(c, &in->customer, &customer));
    TRY(pay_customer(c, in, customer));
    return insert_history(c, in, customer);
}
