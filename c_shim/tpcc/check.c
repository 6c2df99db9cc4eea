#include "check.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stream.h"

#define THREADS_MAX 64

const char *condition_text(int condition)
{
    static const char *const texts[CONDITION_COUNT + 1] = {
        NULL,
        "w_ytd is the sum of d_ytd",
        "d_next_o_id - 1 is the largest order and new order",
        "new orders have no gaps",
        "o_ol_cnt adds up to the number of lines",
        "a carrier is missing where a new order waits",
        "each order has its o_ol_cnt lines",
        "a line has no delivery date where its order has no carrier",
        "w_ytd is the sum of its history",
        "d_ytd is the sum of its history",
        "c_balance is deliveries less payments",
        "orders less new orders are those delivered",
        "c_balance + c_ytd_payment is what was delivered",
        "every acknowledged order is there",
        "every index is sound",
    };

    return texts[condition];
}

/* What all checking threads share. */
typedef struct checking {
    bench *bench;
    check_results *results;
    pthread_mutex_t mutex; /* results */
    atomic_int next_job;
    atomic_bool failed;
    /* Sums of H_AMOUNT: by customer and by district, in order of their keys. */
    int64_t *paid_by_customer;
    int64_t *paid_in_district;
} checking;

static size_t district_place(int warehouse, int district)
{
    return (size_t)(warehouse - 1) * DISTRICTS + (size_t)(district - 1);
}

/* Counts a violation if `holds` is false. */
static void expect(checking *k, int condition, bool holds, const char *format, ...)
{
    condition_result *result = &k->results->conditions[condition];
    va_list args;

    if (holds)
        return;
    pthread_mutex_lock(&k->mutex);
    if (result->violations++ == 0) {
        va_start(args, format);
        vsnprintf(result->first, sizeof result->first, format, args);
        va_end(args);
    }
    pthread_mutex_unlock(&k->mutex);
}

/* ---------------------------------------------------------------------------- a warehouse */

/* What the orders of a district came to. */
typedef struct district_sums {
    int next_order, order_max, new_order_min, new_order_max;
    int64_t orders, new_orders, lines, lines_told, deliveries, ytd;
} district_sums;

typedef struct warehouse_check {
    checking *checking;
    client *client;
    int warehouse;
    district_sums districts[DISTRICTS];
    int64_t *delivered; /* sums of OL_AMOUNT by customer */
} warehouse_check;

static int64_t *delivered_to(const warehouse_check *w, int district, int64_t customer)
{
    int customers = w->checking->bench->size.customers;

    if (district < 1 || district > DISTRICTS || customer < 1 || customer > customers)
        return NULL;
    return &w->delivered[(size_t)(district - 1) * (size_t)customers + (size_t)customer - 1];
}

static district_sums *sums_of(warehouse_check *w, int64_t district)
{
    return &w->districts[(district >= 1 && district <= DISTRICTS ? district : 1) - 1];
}

/* Where a row stands among the orders: -1 before, 0 in, 1 after the order. */
static int place(const stream *s, unsigned district, unsigned order, int64_t d, int64_t o)
{
    int64_t row_d = stream_number(s, district), row_o = stream_number(s, order);

    if (row_d != d)
        return row_d < d ? -1 : 1;
    return row_o < o ? -1 : row_o > o;
}

/* The lines of one order; those before it belong to none. */
static xt_status check_lines(warehouse_check *w, stream *lines, const stream *order)
{
    checking *k = w->checking;
    int d = (int)stream_number(order, O_D_ID), o = (int)stream_number(order, O_ID), count = 0;
    bool no_carrier = stream_is_null(order, O_CARRIER_ID);
    int64_t *delivered = delivered_to(w, d, stream_number(order, O_C_ID));

    while (stream_has(lines) && place(lines, OL_D_ID, OL_O_ID, d, o) <= 0) {
        bool no_date = stream_is_null(lines, OL_DELIVERY_D);

        sums_of(w, stream_number(lines, OL_D_ID))->lines++;
        if (place(lines, OL_D_ID, OL_O_ID, d, o) < 0) {
            expect(k, 6, false, "line of order (%d,%d,%d), which is not there", w->warehouse,
                   (int)stream_number(lines, OL_D_ID), (int)stream_number(lines, OL_O_ID));
        } else {
            count++;
            expect(k, 7, no_date == no_carrier, "order (%d,%d,%d) line %d", w->warehouse, d, o,
                   (int)stream_number(lines, OL_NUMBER));
            if (!no_date && delivered != NULL)
                *delivered += stream_number(lines, OL_AMOUNT);
        }
        TRY(stream_next(lines));
    }
    expect(k, 6, count == stream_number(order, O_OL_CNT), "order (%d,%d,%d) has %d lines, not %d",
           w->warehouse, d, o, count, (int)stream_number(order, O_OL_CNT));
    return XT_OK;
}

static void count_new_order(warehouse_check *w, const stream *waiting)
{
    district_sums *sums = sums_of(w, stream_number(waiting, NO_D_ID));
    int o = (int)stream_number(waiting, NO_O_ID);

    if (sums->new_orders++ == 0)
        sums->new_order_min = o;
    sums->new_order_max = o;
}

static xt_status check_new_order(warehouse_check *w, stream *waiting, const stream *order)
{
    int d = (int)stream_number(order, O_D_ID), o = (int)stream_number(order, O_ID);
    bool found = false;

    while (stream_has(waiting) && place(waiting, NO_D_ID, NO_O_ID, d, o) <= 0) {
        bool same = place(waiting, NO_D_ID, NO_O_ID, d, o) == 0;

        expect(w->checking, 5, same, "new order (%d,%d,%d) without an order", w->warehouse,
               (int)stream_number(waiting, NO_D_ID), (int)stream_number(waiting, NO_O_ID));
        found = found || same;
        count_new_order(w, waiting);
        TRY(stream_next(waiting));
    }
    expect(w->checking, 5, found == stream_is_null(order, O_CARRIER_ID),
           "order (%d,%d,%d) has %s carrier and %s new order", w->warehouse, d, o,
           stream_is_null(order, O_CARRIER_ID) ? "no" : "a", found ? "a" : "no");
    return XT_OK;
}

/* Orders, lines and new orders side by side: conditions 5, 6, 7 and the sums of others. */
static xt_status check_orders(warehouse_check *w)
{
    stream orders, lines, waiting;
    xt_status status = XT_OK;

    TRY(stream_open(&orders, w->client, ORDERS, w->warehouse));
    TRY(stream_open(&lines, w->client, ORDER_LINE, w->warehouse));
    TRY(stream_open(&waiting, w->client, NEW_ORDERS, w->warehouse));
    while (stream_has(&orders)) {
        district_sums *sums = sums_of(w, stream_number(&orders, O_D_ID));

        sums->orders++;
        sums->order_max = (int)stream_number(&orders, O_ID);
        sums->lines_told += stream_number(&orders, O_OL_CNT);
        TRY(check_lines(w, &lines, &orders));
        TRY(check_new_order(w, &waiting, &orders));
        TRY(stream_next(&orders));
    }
    for (; status == XT_OK && stream_has(&waiting); status = stream_next(&waiting)) {
        expect(w->checking, 5, false, "new order (%d,%d,%d) after the last order", w->warehouse,
               (int)stream_number(&waiting, NO_D_ID), (int)stream_number(&waiting, NO_O_ID));
        count_new_order(w, &waiting);
    }
    for (; status == XT_OK && stream_has(&lines); status = stream_next(&lines)) {
        expect(w->checking, 6, false, "line (%d,%d,%d) after the last order", w->warehouse,
               (int)stream_number(&lines, OL_D_ID), (int)stream_number(&lines, OL_O_ID));
        sums_of(w, stream_number(&lines, OL_D_ID))->lines++;
    }
    return status;
}

static xt_status check_customers(warehouse_check *w)
{
    checking *k = w->checking;
    int customers = k->bench->size.customers;
    int64_t count = 0;
    xt_status status;
    stream s;

    for (status = stream_open(&s, w->client, CUSTOMER, w->warehouse);
         status == XT_OK && stream_has(&s); status = stream_next(&s)) {
        int d = (int)stream_number(&s, C_D_ID), c = (int)stream_number(&s, C_ID);
        int64_t balance = stream_number(&s, C_BALANCE), *delivered = delivered_to(w, d, c);
        int64_t paid;

        count++;
        if (delivered == NULL) {
            expect(k, 10, false, "customer (%d,%d,%d) should not be there", w->warehouse, d, c);
            continue;
        }
        paid = k->paid_by_customer[district_place(w->warehouse, d) * (size_t)customers +
                                   (size_t)c - 1];
        sums_of(w, d)->deliveries += stream_number(&s, C_DELIVERY_CNT);
        expect(k, 10, balance == *delivered - paid,
               "customer (%d,%d,%d): balance %lld, delivered %lld, paid %lld", w->warehouse, d, c,
               (long long)balance, (long long)*delivered, (long long)paid);
        expect(k, 12, balance + stream_number(&s, C_YTD_PAYMENT) == *delivered,
               "customer (%d,%d,%d): balance %lld, ytd_payment %lld, delivered %lld", w->warehouse,
               d, c, (long long)balance, (long long)stream_number(&s, C_YTD_PAYMENT),
               (long long)*delivered);
    }
    expect(k, 10, count == (int64_t)customers * DISTRICTS, "warehouse %d has %lld customers",
           w->warehouse, (long long)count);
    return XT_OK;
}

static xt_status read_districts(warehouse_check *w)
{
    xt_status status;
    stream s;

    for (status = stream_open(&s, w->client, DISTRICT, w->warehouse);
         status == XT_OK && stream_has(&s); status = stream_next(&s)) {
        district_sums *sums = sums_of(w, stream_number(&s, D_ID));

        sums->next_order = (int)stream_number(&s, D_NEXT_O_ID);
        sums->ytd = stream_number(&s, D_YTD);
    }
    return status;
}

/* The conditions on a whole district: 2, 3, 4, 9, 11. */
static void judge_district(const warehouse_check *w, int district)
{
    checking *k = w->checking;
    const district_sums *s = &w->districts[district - 1];
    int64_t paid = k->paid_in_district[district_place(w->warehouse, district)];
    int64_t delivered = delivered_at_load(&k->bench->size) + s->deliveries;

    expect(k, 2, s->next_order - 1 == s->order_max &&
                     (s->new_orders == 0 || s->new_order_max == s->order_max),
           "district (%d,%d): next %d, orders to %d, new orders to %d", w->warehouse, district,
           s->next_order, s->order_max, s->new_order_max);
    expect(k, 3, s->new_orders == 0 ||
                     s->new_order_max - s->new_order_min + 1 == s->new_orders,
           "district (%d,%d): %lld new orders from %d to %d", w->warehouse, district,
           (long long)s->new_orders, s->new_order_min, s->new_order_max);
    expect(k, 4, s->lines == s->lines_told, "district (%d,%d): %lld lines, not %lld", w->warehouse,
           district, (long long)s->lines, (long long)s->lines_told);
    expect(k, 9, s->ytd == paid, "district (%d,%d): ytd %lld, history %lld", w->warehouse, district,
           (long long)s->ytd, (long long)paid);
    expect(k, 11, s->orders - s->new_orders == delivered,
           "district (%d,%d): %lld orders, %lld new, %lld delivered", w->warehouse, district,
           (long long)s->orders, (long long)s->new_orders, (long long)delivered);
}

static xt_status judge_warehouse(warehouse_check *w)
{
    int64_t ytd = 0, paid = 0, of_warehouse = 0;
    stream s;

    TRY(stream_open(&s, w->client, WAREHOUSE, w->warehouse));
    if (stream_has(&s))
        of_warehouse = stream_number(&s, W_YTD);
    for (int d = 1; d <= DISTRICTS; d++) {
        judge_district(w, d);
        ytd += w->districts[d - 1].ytd;
        paid += w->checking->paid_in_district[district_place(w->warehouse, d)];
    }
    expect(w->checking, 1, of_warehouse == ytd, "warehouse %d: ytd %lld, districts %lld",
           w->warehouse, (long long)of_warehouse, (long long)ytd);
    expect(w->checking, 8, of_warehouse == paid, "warehouse %d: ytd %lld, history %lld",
           w->warehouse, (long long)of_warehouse, (long long)paid);
    return XT_OK;
}

static xt_status check_warehouse(checking *k, client *c, int warehouse)
{
    warehouse_check w = { .checking = k, .client = c, .warehouse = warehouse };
    xt_status status = statement_next(c);

    w.delivered = calloc((size_t)k->bench->size.customers * DISTRICTS, sizeof *w.delivered);
    if (w.delivered == NULL)
        abort();
    if (status == XT_OK)
        status = read_districts(&w);
    if (status == XT_OK)
        status = check_orders(&w);
    if (status == XT_OK)
        status = check_customers(&w);
    if (status == XT_OK)
        status = judge_warehouse(&w);
    free(w.delivered);
    return status == XT_OK ? client_commit(c) : status;
}

/* --------------------------------------------------------------------------- all together */

/* The history has no key: one thread reads it all. */
static xt_status read_history(checking *k, client *c)
{
    const shape *size = &k->bench->size;
    xt_status status;
    stream s;

    TRY(statement_next(c));
    for (status = stream_open(&s, c, HISTORY, 0); status == XT_OK && stream_has(&s);
         status = stream_next(&s)) {
        int64_t amount = stream_number(&s, H_AMOUNT);
        int cw = (int)stream_number(&s, H_C_W_ID), cd = (int)stream_number(&s, H_C_D_ID);
        int cc = (int)stream_number(&s, H_C_ID);
        int w = (int)stream_number(&s, H_W_ID), d = (int)stream_number(&s, H_D_ID);
        bool sound = cw >= 1 && cw <= size->warehouses && w >= 1 && w <= size->warehouses &&
                     cd >= 1 && cd <= DISTRICTS && d >= 1 && d <= DISTRICTS && cc >= 1 &&
                     cc <= size->customers;

        expect(k, 8, sound, "history of customer (%d,%d,%d) in district (%d,%d)", cw, cd, cc, w, d);
        if (!sound)
            continue;
        k->paid_by_customer[district_place(cw, cd) * (size_t)size->customers + (size_t)cc - 1] +=
            amount;
        k->paid_in_district[district_place(w, d)] += amount;
    }
    return status == XT_OK ? client_commit(c) : status;
}

typedef struct table_check {
    checking *checking;
    enum table table;
} table_check;

/* A row of table_check: severity, text. */
static uint32_t take_finding(void *ctx, const xt_value *values, uint32_t count)
{
    table_check *t = ctx;

    if (count >= 2)
        expect(t->checking, 14, false, "table %s: %.*s", table_name(t->table),
               (int)values[1].length, values[1].v.s);
    return 0;
}

static xt_status check_indexes(checking *k, client *c, enum table table)
{
    table_check t = { .checking = k, .table = table };
    xt_status status;

    TRY(statement_next(c));
    TRY(bind_table(c, table, READ, ALL_COLUMNS, 0));
    status = c->xt->table_check(c->handles[table].table, XT_CHECK_EXTENDED, take_finding, &t);
    expect(k, 14, status != XT_CRASHED, "table %s is damaged", table_name(table));
    if (status != XT_OK && status != XT_CRASHED)
        return status;
    return client_commit(c);
}

/* Jobs: the warehouses, then the tables. */
static void *check_main(void *argument)
{
    checking *k = argument;
    int warehouses = k->bench->size.warehouses, job;
    client *c = calloc(1, sizeof *c);

    if (c == NULL)
        abort();
    if (!client_open(c, k->bench, 2000, true))
        k->failed = true;
    while (!k->failed && (job = k->next_job++) < warehouses + TABLE_COUNT) {
        xt_status status = job < warehouses ? check_warehouse(k, c, job + 1)
                                            : check_indexes(k, c, (enum table)(job - warehouses));

        if (status != XT_OK) {
            client_complain(c, "checking", status);
            client_undo(c);
            k->failed = true;
        }
    }
    if (c->session != NULL)
        client_close(c);
    free(c);
    return NULL;
}

int64_t check_count_orders(bench *b)
{
    int64_t orders = 0;
    xt_status status = XT_OK;
    client *c = calloc(1, sizeof *c);

    if (c == NULL)
        abort();
    if (!client_open(c, b, 1, true)) {
        free(c);
        return -1;
    }
    for (int w = 1; status == XT_OK && w <= b->size.warehouses; w++) {
        stream s;

        status = statement_next(c);
        if (status == XT_OK)
            status = stream_open(&s, c, DISTRICT, w);
        while (status == XT_OK && stream_has(&s)) {
            orders += stream_number(&s, D_NEXT_O_ID) - 1;
            status = stream_next(&s);
        }
        if (status == XT_OK)
            status = client_commit(c);
    }
    if (status != XT_OK) {
        client_complain(c, "counting orders", status);
        client_undo(c);
    }
    client_close(c);
    free(c);
    return status == XT_OK ? orders : -1;
}

static void judge(check_results *r, int64_t orders)
{
    r->held = !r->failed;
    for (int i = 1; i <= CONDITION_COUNT; i++) {
        r->conditions[i].checked = !r->failed && (i != 13 || orders >= 0);
        r->held = r->held && r->conditions[i].violations == 0;
    }
}

void check_all(bench *b, int64_t orders, check_results *r)
{
    size_t districts = (size_t)b->size.warehouses * DISTRICTS;
    int threads = b->options->load_threads < THREADS_MAX ? b->options->load_threads : THREADS_MAX;
    checking k = { .bench = b, .results = r, .mutex = PTHREAD_MUTEX_INITIALIZER };
    pthread_t pool[THREADS_MAX];
    uint64_t begin = clock_us();
    client *c = calloc(1, sizeof *c);
    int64_t found;

    memset(r, 0, sizeof *r);
    k.paid_by_customer = calloc(districts * (size_t)b->size.customers, sizeof(int64_t));
    k.paid_in_district = calloc(districts, sizeof(int64_t));
    if (c == NULL || k.paid_by_customer == NULL || k.paid_in_district == NULL)
        abort();
    if (client_open(c, b, 2000, true)) {
        xt_status status = read_history(&k, c);

        if (status != XT_OK) {
            client_complain(c, "reading the history", status);
            client_undo(c);
            k.failed = true;
        }
        client_close(c);
    } else {
        k.failed = true;
    }
    for (int i = 0; i < threads; i++)
        if (pthread_create(&pool[i], NULL, check_main, &k) != 0)
            abort();
    for (int i = 0; i < threads; i++)
        pthread_join(pool[i], NULL);
    found = orders < 0 ? orders : check_count_orders(b);
    expect(&k, 13, found == orders, "%lld orders are there, %lld were acknowledged",
           (long long)found, (long long)orders);
    r->failed = k.failed;
    judge(r, orders);
    r->seconds = (double)(clock_us() - begin) / 1e6;
    free(k.paid_by_customer);
    free(k.paid_in_district);
    free(c);
}
