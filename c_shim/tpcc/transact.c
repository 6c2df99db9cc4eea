#include "transact.h"

#include <string.h>

#define CUSTOMER_A 1023
#define LAST_NAME_A 255
#define ITEM_A 8191

const char *kind_name(enum kind kind)
{
    static const char *const names[] = { "New-Order", "Payment", "Order-Status", "Delivery",
                                         "Stock-Level" };

    return names[kind];
}

static enum kind draw_kind(dice *d)
{
    int at = draw(d, 1, 100);

    return at <= 45 ? NEW_ORDER : at <= 88 ? PAYMENT : at <= 92 ? ORDER_STATUS
           : at <= 96                                ? DELIVERY
                                                     : STOCK_LEVEL;
}

static int draw_other_warehouse(client *c, int home)
{
    int other = draw(&c->dice, 1, c->bench->size.warehouses - 1);

    return other < home ? other : other + 1;
}

static int draw_customer(client *c)
{
    return draw_uneven(&c->dice, CUSTOMER_A, c->dice.customer_c, 1, c->bench->size.customers);
}

static void draw_name(client *c, char name[LAST_NAME_MAX + 1])
{
    int names = c->bench->size.customers < 1000 ? c->bench->size.customers : 1000;

    last_name(draw_uneven(&c->dice, LAST_NAME_A, c->dice.last_name_c, 0, names - 1), name);
}

static void draw_order(input *in, client *c)
{
    dice *d = &c->dice;

    in->customer.number = draw_customer(c);
    in->line_count = draw(d, 5, LINES_MAX);
    in->has_unused_item = draw_percent(d, 1);
    in->all_local = true;
    for (int i = 0; i < in->line_count; i++) {
        order_line_input *line = &in->lines[i];
        bool remote = c->bench->size.warehouses > 1 && draw_percent(d, 1);

        line->item = draw_uneven(d, ITEM_A, d->item_c, 1, c->bench->size.items);
        line->warehouse = remote ? draw_other_warehouse(c, in->warehouse) : in->warehouse;
        line->quantity = draw(d, 1, 10);
        in->all_local = in->all_local && !remote;
    }
    if (in->has_unused_item)
        in->lines[in->line_count - 1].item = c->bench->size.items + 1;
}

static void draw_payment(input *in, client *c)
{
    dice *d = &c->dice;

    in->amount = draw(d, 100, 500000);
    if (c->bench->size.warehouses > 1 && draw_percent(d, 15)) {
        in->customer.warehouse = draw_other_warehouse(c, in->warehouse);
        in->customer.district = draw(d, 1, DISTRICTS);
    }
}

void input_draw(input *in, client *c)
{
    dice *d = &c->dice;

    memset(in, 0, sizeof *in);
    in->kind = draw_kind(d);
    in->warehouse = draw(d, 1, c->bench->size.warehouses);
    in->district = draw(d, 1, DISTRICTS);
    in->customer.warehouse = in->warehouse;
    in->customer.district = in->district;
    in->carrier = draw(d, 1, 10);
    in->threshold = draw(d, 10, 20);
    if (in->kind == NEW_ORDER)
        draw_order(in, c);
    if (in->kind == PAYMENT)
        draw_payment(in, c);
    if (in->kind == PAYMENT || in->kind == ORDER_STATUS) {
        if (draw_percent(d, 60))
            draw_name(c, in->customer.name);
        else
            in->customer.number = draw_customer(c);
    }
}

static xt_status run(client *c, const input *in, bool *rolled_back)
{
    switch (in->kind) {
    case NEW_ORDER: return new_order(c, in, rolled_back);
    case PAYMENT: return payment(c, in);
    case ORDER_STATUS: return order_status(c, in);
    case DELIVERY: return delivery(c, in);
    default: return stock_level(c, in);
    }
}

xt_status transact(client *c, const input *in, bool *rolled_back)
{
    xt_status status;

    *rolled_back = false;
    status = run(c, in, rolled_back);
    if (status == XT_OK && !*rolled_back)
        status = client_commit(c);
    if (status == XT_OK && !*rolled_back)
        return XT_OK;
    if (status == XT_OK || is_retriable(status)) {
        xt_status undone = client_undo(c);

        status = undone != XT_OK ? undone : status;
    }
    return status; /* else: it stays as it is, and so does the engine's text */
}

xt_status find_customer(client *c, const customer_input *who, int *number_found)
{
    int numbers[128], count = 0;
    key_image key;
    xt_status status;

    *number_found = who->number;
    if (who->number != 0)
        return XT_OK;
    TRY(statement_next(c));
    TRY(bind_table(c, CUSTOMER, READ, COLUMN(C_W_ID) | COLUMN(C_D_ID) | COLUMN(C_ID), 0));
    key = KEY(c, CUSTOMER, CUSTOMER_BY_NAME, who->warehouse, who->district);
    key_text(&key, column_at(c, CUSTOMER, C_LAST), who->name);
    status = read_key(c, CUSTOMER, CUSTOMER_BY_NAME, &key, XT_FIND_EXACT);
    while (status == XT_OK) {
        if (count < 128)
            numbers[count++] = (int)number(c, CUSTOMER, C_ID);
        status = read_next_same(c, CUSTOMER, &key);
    }
    if (status != XT_END_OF_FILE)
        return status;
    *number_found = numbers[(count + 1) / 2 - 1];
    return XT_OK;
}
