/* The rows of a new database (clause 4.3.3). Numbers are from 1, both ends included. */
#ifndef XTRADB_TPCC_FILL_H
#define XTRADB_TPCC_FILL_H

#include "connect.h"

xt_status fill_items(client *c, int first, int last);
/* The warehouse's row and its districts'. */
xt_status fill_warehouse(client *c, int warehouse);
xt_status fill_stock(client *c, int warehouse, int first, int last);
/* Customers and a line of history each. */
xt_status fill_customers(client *c, int warehouse, int district);
/* Orders, their lines, and new orders for those not delivered. */
xt_status fill_orders(client *c, int warehouse, int district);
/* The row that says that all is there. */
xt_status fill_loaded(client *c);

#endif
