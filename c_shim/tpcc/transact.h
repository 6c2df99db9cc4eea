/*
 * The five transactions of TPC-C (clause 2).
 *
 * The input is drawn before the first try, so that a try after a deadlock does the same work. The
 * functions leave the transaction open; transact commits, or undoes after any code but XT_OK.
 */
#ifndef XTRADB_TPCC_TRANSACT_H
#define XTRADB_TPCC_TRANSACT_H

#include "connect.h"

enum kind { NEW_ORDER, PAYMENT, ORDER_STATUS, DELIVERY, STOCK_LEVEL, KIND_COUNT };

#define LINES_MAX 15

/* A customer by number, or (number 0) by last name. */
typedef struct customer_input {
    int warehouse, district, number;
    char name[LAST_NAME_MAX + 1];
} customer_input;

typedef struct order_line_input {
    int item, warehouse, quantity;
} order_line_input;

typedef struct input {
    enum kind kind;
    int warehouse, district;
    customer_input customer;
    int line_count; /* NEW_ORDER */
    bool all_local, has_unused_item;
    order_line_input lines[LINES_MAX];
    int64_t amount; /* PAYMENT, cents */
    int carrier;    /* DELIVERY */
    int threshold;  /* STOCK_LEVEL */
} input;

/* Draws a kind by the standard mix (45 : 43 : 4 : 4 : 4), and its input. */
void input_draw(input *in, client *c);

/* One try. `*rolled_back`: it was undone because the input asks for it (an unused item). */
xt_status transact(client *c, const input *in, bool *rolled_back);

xt_status new_order(client *c, const input *in, bool *item_is_unused);
xt_status payment(client *c, const input *in);
xt_status order_status(client *c, const input *in);
xt_status delivery(client *c, const input *in);
xt_status stock_level(client *c, const input *in);

/* The customer's number: as given, or the one in the middle of those with the name, by first name. */
xt_status find_customer(client *c, const customer_input *who, int *number);

const char *kind_name(enum kind kind);

#endif
