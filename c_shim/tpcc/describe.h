/*
 * The TPC-C schema: ten tables, their columns, keys and row images.
 *
 * Nine are TPC-C's; `loaded` has one row, written last by the loader, which says that the directory
 * is complete and of what size. Columns are named by enumerators in order of their table.
 */
#ifndef XTRADB_TPCC_DESCRIBE_H
#define XTRADB_TPCC_DESCRIBE_H

#include <stdbool.h>
#include <stdio.h>
#include <xtradb.h>

#define DATABASE "tpcc"
#define DISTRICTS 10
#define LATIN1_BIN 47
#define ROW_BYTES_MAX 1024

enum table { WAREHOUSE, DISTRICT, CUSTOMER, HISTORY, NEW_ORDERS, ORDERS, ORDER_LINE, ITEM, STOCK,
             LOADED, TABLE_COUNT };

enum { W_ID, W_NAME, W_STREET_1, W_STREET_2, W_CITY, W_STATE, W_ZIP, W_TAX, W_YTD };
enum { D_W_ID, D_ID, D_NAME, D_STREET_1, D_STREET_2, D_CITY, D_STATE, D_ZIP, D_TAX, D_YTD,
       D_NEXT_O_ID };
enum { C_W_ID, C_D_ID, C_ID, C_FIRST, C_MIDDLE, C_LAST, C_STREET_1, C_STREET_2, C_CITY, C_STATE,
       C_ZIP, C_PHONE, C_SINCE, C_CREDIT, C_CREDIT_LIM, C_DISCOUNT, C_BALANCE, C_YTD_PAYMENT,
       C_PAYMENT_CNT, C_DELIVERY_CNT, C_DATA };
enum { H_C_ID, H_C_D_ID, H_C_W_ID, H_D_ID, H_W_ID, H_DATE, H_AMOUNT, H_DATA };
enum { NO_W_ID, NO_D_ID, NO_O_ID };
enum { O_W_ID, O_D_ID, O_ID, O_C_ID, O_ENTRY_D, O_CARRIER_ID, O_OL_CNT, O_ALL_LOCAL };
enum { OL_W_ID, OL_D_ID, OL_O_ID, OL_NUMBER, OL_I_ID, OL_SUPPLY_W_ID, OL_DELIVERY_D, OL_QUANTITY,
       OL_AMOUNT, OL_DIST_INFO };
enum { I_ID, I_IM_ID, I_NAME, I_PRICE, I_DATA };
enum { S_W_ID, S_I_ID, S_QUANTITY, S_DIST_01, S_DIST_10 = S_DIST_01 + 9, S_YTD, S_ORDER_CNT,
       S_REMOTE_CNT, S_DATA };
enum { L_ID, L_WAREHOUSES, L_ITEMS, L_CUSTOMERS, L_LAST_NAME_C };

/* Numbers of keys in the calls on a table. */
enum { PRIMARY, CUSTOMER_BY_NAME = 1, ORDERS_BY_CUSTOMER = 1 };

/* How much of everything a directory has. A standard one: 100 000 items, 3 000 customers. */
typedef struct shape {
    int warehouses;
    int items;
    int customers;   /* and first orders, of each of the ten districts */
    int last_name_c; /* NURand's constant for last names when the rows were made */
} shape;

/* Of the first orders of a district, this many were delivered (2 100 of 3 000). */
static inline int delivered_at_load(const shape *s)
{
    return s->customers - s->customers * 3 / 10;
}

/* The definitions; made once, before any thread starts. */
void describe_tables(void);
const xt_table_def *table_definition(enum table table);
const char *table_name(enum table table);
static inline const xt_column *column_of(const xt_table_def *def, unsigned column)
{
    return &def->columns[column];
}

/* The same as SQL, for servers. */
void print_schema(FILE *to);

#endif
