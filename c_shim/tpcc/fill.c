#include "fill.h"

#include <stdlib.h>
#include <string.h>

#define ROWS_PER_TRANSACTION 1000 /* and, in a load, for each step of the progress */

/* Tells of what is open, and commits it, unless it is part of a load. */
static xt_status fill_end(client *c)
{
    *c->rows_told += c->rows_open;
    c->rows_open = 0;
    return c->loads ? XT_OK : client_commit(c);
}

xt_status fill_commit(client *c)
{
    TRY(load_end(c));
    return client_commit(c);
}

/* Inserts `next`; begins and ends transactions as needed. */
static xt_status add(client *c, enum table table)
{
    if (!c->in_statement)
        TRY(c->loads ? statement_next_load(c) : statement_next(c));
    TRY(bind_table(c, table, CHANGE, ALL_COLUMNS, ALL_COLUMNS));
    if (c->loads)
        TRY(load_begin(c, table));
    TRY(insert_next(c, table));
    if (++c->rows_open < ROWS_PER_TRANSACTION)
        return XT_OK;
    return fill_end(c);
}

static void set_random_text(client *c, enum table table, unsigned column, int shortest, int longest)
{
    char text[512];

    set_text(c, table, column, text, draw_text(&c->dice, text, shortest, longest));
}

static void set_digits(client *c, enum table table, unsigned column, int length)
{
    char text[32];

    set_text(c, table, column, text, draw_digits(&c->dice, text, length));
}

/* Data of items and stock: one in ten has "ORIGINAL" somewhere in it. */
static void set_data(client *c, enum table table, unsigned column)
{
    char text[64];
    uint32_t length = draw_text(&c->dice, text, 26, 50);

    if (draw_percent(&c->dice, 10))
        memcpy(text + draw(&c->dice, 0, (int)length - 8), "ORIGINAL", 8);
    set_text(c, table, column, text, length);
}

/* Street, street, city, state, zip: five columns from `first` on. */
static void set_address(client *c, enum table table, unsigned first)
{
    char zip[16];

    for (unsigned i = 0; i < 3; i++)
        set_random_text(c, table, first + i, 10, 20);
    set_random_text(c, table, first + 3, 2, 2);
    draw_digits(&c->dice, zip, 4);
    memcpy(zip + 4, "11111", 5);
    set_text(c, table, first + 4, zip, 9);
}

xt_status fill_items(client *c, int first, int last)
{
    for (int item = first; item <= last; item++) {
        set_number(c, ITEM, I_ID, item);
        set_number(c, ITEM, I_IM_ID, draw(&c->dice, 1, 10000));
        set_random_text(c, ITEM, I_NAME, 14, 24);
        set_number(c, ITEM, I_PRICE, draw(&c->dice, 100, 10000));
        set_data(c, ITEM, I_DATA);
        TRY(add(c, ITEM));
    }
    return fill_end(c);
}

xt_status fill_warehouse(client *c, int warehouse)
{
    int64_t ytd = (int64_t)c->bench->size.customers * 1000; /* 10.00 of each customer */

    set_number(c, WAREHOUSE, W_ID, warehouse);
    set_random_text(c, WAREHOUSE, W_NAME, 6, 10);
    set_address(c, WAREHOUSE, W_STREET_1);
    set_number(c, WAREHOUSE, W_TAX, draw(&c->dice, 0, 2000));
    set_number(c, WAREHOUSE, W_YTD, ytd * DISTRICTS);
    TRY(add(c, WAREHOUSE));
    for (int district = 1; district <= DISTRICTS; district++) {
        set_number(c, DISTRICT, D_W_ID, warehouse);
        set_number(c, DISTRICT, D_ID, district);
        set_random_text(c, DISTRICT, D_NAME, 6, 10);
        set_address(c, DISTRICT, D_STREET_1);
        set_number(c, DISTRICT, D_TAX, draw(&c->dice, 0, 2000));
        set_number(c, DISTRICT, D_YTD, ytd);
        set_number(c, DISTRICT, D_NEXT_O_ID, c->bench->size.customers + 1);
        TRY(add(c, DISTRICT));
    }
    return fill_end(c);
}

xt_status fill_stock(client *c, int warehouse, int first, int last)
{
    for (int item = first; item <= last; item++) {
        set_number(c, STOCK, S_W_ID, warehouse);
        set_number(c, STOCK, S_I_ID, item);
        set_number(c, STOCK, S_QUANTITY, draw(&c->dice, 10, 100));
        for (unsigned i = S_DIST_01; i <= S_DIST_10; i++)
            set_random_text(c, STOCK, i, 24, 24);
        set_number(c, STOCK, S_YTD, 0);
        set_number(c, STOCK, S_ORDER_CNT, 0);
        set_number(c, STOCK, S_REMOTE_CNT, 0);
        set_data(c, STOCK, S_DATA);
        TRY(add(c, STOCK));
    }
    return fill_end(c);
}

static xt_status fill_customer(client *c, int warehouse, int district, int customer)
{
    dice *d = &c->dice;
    char name[LAST_NAME_MAX + 1];

    last_name(customer <= 1000 ? customer - 1
                               : draw_uneven(d, 255, c->bench->size.last_name_c, 0, 999), name);
    set_number(c, CUSTOMER, C_W_ID, warehouse);
    set_number(c, CUSTOMER, C_D_ID, district);
    set_number(c, CUSTOMER, C_ID, customer);
    set_random_text(c, CUSTOMER, C_FIRST, 8, 16);
    set_text(c, CUSTOMER, C_MIDDLE, "OE", 2);
    set_text(c, CUSTOMER, C_LAST, name, (uint32_t)strlen(name));
    set_address(c, CUSTOMER, C_STREET_1);
    set_digits(c, CUSTOMER, C_PHONE, 16);
    set_number(c, CUSTOMER, C_SINCE, datetime_now());
    set_text(c, CUSTOMER, C_CREDIT, draw_percent(d, 10) ? "BC" : "GC", 2);
    set_number(c, CUSTOMER, C_CREDIT_LIM, 5000000);
    set_number(c, CUSTOMER, C_DISCOUNT, draw(d, 0, 5000));
    set_number(c, CUSTOMER, C_BALANCE, -1000);
    set_number(c, CUSTOMER, C_YTD_PAYMENT, 1000);
    set_number(c, CUSTOMER, C_PAYMENT_CNT, 1);
    set_number(c, CUSTOMER, C_DELIVERY_CNT, 0);
    set_random_text(c, CUSTOMER, C_DATA, 300, 500);
    return add(c, CUSTOMER);
}

xt_status fill_customers(client *c, int warehouse, int district)
{
    for (int customer = 1; customer <= c->bench->size.customers; customer++)
        TRY(fill_customer(c, warehouse, district, customer));
    for (int customer = 1; customer <= c->bench->size.customers; customer++) {
        set_number(c, HISTORY, H_C_ID, customer);
        set_number(c, HISTORY, H_C_D_ID, district);
        set_number(c, HISTORY, H_C_W_ID, warehouse);
        set_number(c, HISTORY, H_D_ID, district);
        set_number(c, HISTORY, H_W_ID, warehouse);
        set_number(c, HISTORY, H_DATE, datetime_now());
        set_number(c, HISTORY, H_AMOUNT, 1000);
        set_random_text(c, HISTORY, H_DATA, 12, 24);
        TRY(add(c, HISTORY));
    }
    return fill_end(c);
}

static xt_status fill_line(client *c, int warehouse, int district, int order, int line)
{
    bool delivered = order <= delivered_at_load(&c->bench->size);

    set_number(c, ORDER_LINE, OL_W_ID, warehouse);
    set_number(c, ORDER_LINE, OL_D_ID, district);
    set_number(c, ORDER_LINE, OL_O_ID, order);
    set_number(c, ORDER_LINE, OL_NUMBER, line);
    set_number(c, ORDER_LINE, OL_I_ID, draw(&c->dice, 1, c->bench->size.items));
    set_number(c, ORDER_LINE, OL_SUPPLY_W_ID, warehouse);
    set_number(c, ORDER_LINE, OL_DELIVERY_D, datetime_now());
    if (!delivered)
        put_null(c->handles[ORDER_LINE].next, column_at(c, ORDER_LINE, OL_DELIVERY_D));
    set_number(c, ORDER_LINE, OL_QUANTITY, 5);
    set_number(c, ORDER_LINE, OL_AMOUNT, delivered ? 0 : draw(&c->dice, 1, 999999));
    set_random_text(c, ORDER_LINE, OL_DIST_INFO, 24, 24);
    return add(c, ORDER_LINE);
}

static xt_status fill_order(client *c, int warehouse, int district, int order, int customer)
{
    bool delivered = order <= delivered_at_load(&c->bench->size);
    int lines = draw(&c->dice, 5, 15);

    set_number(c, ORDERS, O_W_ID, warehouse);
    set_number(c, ORDERS, O_D_ID, district);
    set_number(c, ORDERS, O_ID, order);
    set_number(c, ORDERS, O_C_ID, customer);
    set_number(c, ORDERS, O_ENTRY_D, datetime_now());
    set_number(c, ORDERS, O_CARRIER_ID, draw(&c->dice, 1, 10));
    if (!delivered)
        put_null(c->handles[ORDERS].next, column_at(c, ORDERS, O_CARRIER_ID));
    set_number(c, ORDERS, O_OL_CNT, lines);
    set_number(c, ORDERS, O_ALL_LOCAL, 1);
    TRY(add(c, ORDERS));
    for (int line = 1; line <= lines; line++)
        TRY(fill_line(c, warehouse, district, order, line));
    if (delivered)
        return XT_OK;
    set_number(c, NEW_ORDERS, NO_W_ID, warehouse);
    set_number(c, NEW_ORDERS, NO_D_ID, district);
    set_number(c, NEW_ORDERS, NO_O_ID, order);
    return add(c, NEW_ORDERS);
}

/* The first orders belong to the customers in random order, one each. */
xt_status fill_orders(client *c, int warehouse, int district)
{
    int count = c->bench->size.customers;
    int *customers = calloc((size_t)count, sizeof *customers);
    xt_status status = XT_OK;

    if (customers == NULL)
        abort();
    for (int i = 0; i < count; i++) {
        int other = draw(&c->dice, 0, i);

        customers[i] = customers[other];
        customers[other] = i + 1;
    }
    for (int order = 1; status == XT_OK && order <= count; order++)
        status = fill_order(c, warehouse, district, order, customers[order - 1]);
    free(customers);
    return status == XT_OK ? fill_end(c) : status;
}

xt_status fill_loaded(client *c)
{
    atomic_long told = 0;

    c->rows_told = &told;
    set_number(c, LOADED, L_ID, 1);
    set_number(c, LOADED, L_WAREHOUSES, c->bench->size.warehouses);
    set_number(c, LOADED, L_ITEMS, c->bench->size.items);
    set_number(c, LOADED, L_CUSTOMERS, c->bench->size.customers);
    set_number(c, LOADED, L_LAST_NAME_C, c->bench->size.last_name_c);
    TRY(add(c, LOADED));
    return fill_end(c);
}
