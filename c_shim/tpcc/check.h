/*
 * The consistency conditions of TPC-C (clause 3.3.2), and what else must hold.
 *
 *    1  W_YTD = sum(D_YTD)                      7  delivery date of a line is NULL iff the carrier is
 *    2  D_NEXT_O_ID - 1 = max(O_ID)             8  W_YTD = sum(H_AMOUNT) of the warehouse
 *                       = max(NO_O_ID)          9  D_YTD = sum(H_AMOUNT) of the district
 *    3  NO_O_ID has no gaps                    10  C_BALANCE = sum(delivered OL_AMOUNT) - sum(H_AMOUNT)
 *    4  sum(O_OL_CNT) = number of lines        11  orders - new orders = delivered at load + C_DELIVERY_CNT
 *    5  carrier is NULL iff there is a         12  C_BALANCE + C_YTD_PAYMENT = sum(delivered OL_AMOUNT)
 *       new order                              13  the orders that the run acknowledged are there
 *    6  O_OL_CNT = lines of the order          14  the engine finds every index sound
 */
#ifndef XTRADB_TPCC_CHECK_H
#define XTRADB_TPCC_CHECK_H

#include "connect.h"

enum { CONDITION_COUNT = 14 };

typedef struct condition_result {
    bool checked;
    uint64_t violations;
    char first[160]; /* the first violation, in words */
} condition_result;

typedef struct check_results {
    condition_result conditions[CONDITION_COUNT + 1]; /* from 1 */
    bool failed;  /* reading failed (said why) */
    bool held;    /* everything was checked and holds */
    double seconds;
} check_results;

/* Orders of all districts so far: what condition 13 compares with. Negative: reading failed. */
int64_t check_count_orders(bench *b);

/* Checks everything with several threads. `orders` < 0: condition 13 is left out. */
void check_all(bench *b, int64_t orders, check_results *r);

const char *condition_text(int condition);

#endif
