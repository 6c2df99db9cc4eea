/* The rows of a new database (clause 4.3.3). Numbers are from 1, both ends included. */
#ifndef XTRADB_TPCC_FILL_H
#define XTRADB_TPCC_FILL_H

#include "connect.h"

/* With `loads` set rows are held back until fill_commit; else each function commits its own. */
xt_status fill_items(client *c, int first, int last);
/* The warehouse's row and its districts'. */
xt_status fill_warehouse(client *c, int warehouse);
xt_status fill_stock(client *c, int warehouse, int first, int last);
/* Customers and a line of history each. */
xt_status fill_customers(client *c, int warehouse, int district);
/* Orders, their lines, and new orders for those not delivered. */
xt_status fill_orders(client *c, int warehouse, int district);
/* Loads what was held back, and commits. */
xt_status fill_commit(client *c);
/* The row that says that all is there. */
xt_status fill_loaded(client *c);

#endif
