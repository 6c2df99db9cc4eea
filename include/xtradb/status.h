/* xtradb/status.h - result codes.
 *
 * Codes below 1000 are MariaDB's HA_ERR_* with their numbers and meaning, so that a MySQL-like
 * host needs no table. Codes from 1000 concern the boundary itself.
 */
#ifndef XTRADB_STATUS_H
#define XTRADB_STATUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Result of a call: one of the XT_* numbers below. */
typedef int32_t xt_status;

#define XT_OK 0

/* ---- HA_ERR_* ------------------------------------------------------------------------------- */
/** No row has the key (first read of a range). */
#define XT_KEY_NOT_FOUND 120
/** A unique key has the value already: session_error_key tells which key. */
#define XT_DUPLICATE_KEY 121
/** A bug inside the library. The message asks for a report. */
#define XT_INTERNAL 122
/** The row changed after the snapshot was taken (innodb_snapshot_isolation). The whole
 *  transaction has been rolled back. */
#define XT_RECORD_CHANGED 123
/** Damage: a page, BLOB or dictionary row contradicts the format. */
#define XT_CRASHED 126
/** Damage inside a row. */
#define XT_WRONG_IN_RECORD 127
#define XT_OUT_OF_MEMORY 128
/** This call is not possible on this kind of object. */
#define XT_WRONG_COMMAND 131
/** update_row or delete_row without a row read before. */
#define XT_NO_ACTIVE_RECORD 133
/** A tablespace, the device or the redo log is full; the message says which, and why. The
 *  statement is undone. */
#define XT_FILE_FULL 135
/** No more rows. */
#define XT_END_OF_FILE 137
/** Known to the format or to SQL, but not supported by this version. */
#define XT_UNSUPPORTED 138
#define XT_ROW_TOO_BIG 139
/** Lock wait timeout, or a locked row under NOWAIT. Only the statement is to be rolled back. */
#define XT_LOCK_WAIT_TIMEOUT 146
/** The lock memory limit is reached. The whole transaction has been rolled back. */
#define XT_LOCK_TABLE_FULL 147
/** Deadlock. The whole transaction has been rolled back. */
#define XT_DEADLOCK 149
#define XT_CANNOT_ADD_FOREIGN 150
#define XT_NO_REFERENCED_ROW 151
#define XT_ROW_IS_REFERENCED 152
#define XT_NO_SAVEPOINT 153
/** The engine's dictionary has no such table. */
#define XT_NO_SUCH_TABLE 155
/** The table is there already. */
#define XT_TABLE_EXISTS 156
#define XT_NULL_IN_SPATIAL 158
/** The definition changed after the snapshot, or under the handle: open the table again. */
#define XT_TABLE_DEF_CHANGED 159
#define XT_FOREIGN_DUPLICATE_KEY 163
/** The template does not fit the table in the dictionary. */
#define XT_TABLE_NEEDS_UPGRADE 164
#define XT_READ_ONLY 165
#define XT_AUTOINC_READ_FAILED 166
/** The next AUTO_INCREMENT value is outside the column's range. */
#define XT_AUTOINC_RANGE 167
#define XT_GENERIC 168
/** update_row: old and new row are equal. Not an error. */
#define XT_RECORD_IS_THE_SAME 169
#define XT_TOO_MANY_TRANSACTIONS 177
/** A key part is longer than the row format allows. */
#define XT_KEY_TOO_LONG 179
#define XT_INDEX_CORRUPT 180
#define XT_UNDO_RECORD_TOO_BIG 181
/** A tablespace file of that name is there already. */
#define XT_TABLESPACE_EXISTS 184
/** The session was interrupted (session_interrupt or the kill check). */
#define XT_INTERRUPTED 188
#define XT_DECRYPTION_FAILED 192
#define XT_FOREIGN_DEPTH 193
/** The tablespace file is missing or discarded. */
#define XT_TABLESPACE_MISSING 194
/** The transaction was rolled back by the engine; only trx_rollback is accepted. */
#define XT_TRX_ABORTED 200

/* ---- the boundary --------------------------------------------------------------------------- */
/** A pointer that must be given is NULL; the message names it. */
#define XT_NULL_ARGUMENT 1000
/** `struct_size` is smaller than version 1.0 of that struct. */
#define XT_SHORT_STRUCT 1001
/** Not a handle of this library, or closed already. */
#define XT_BAD_HANDLE 1002
/** The call does not fit the state: scan_next without scan_begin, init while running ... */
#define XT_WRONG_ORDER 1003
/** Something holds the object; the message says who. The call may be repeated. */
#define XT_BUSY 1004
/** An argument is out of range or malformed; the message says which and why. */
#define XT_INVALID 1005
/** The engine is not between engine_init and engine_deinit. */
#define XT_NOT_RUNNING 1006
/** The engine stopped itself to protect the files; deinit and init again. */
#define XT_STOPPED 1007
/** The operating system refused; the message has file, operation and errno. */
#define XT_IO 1008
/** Another process uses the data directory. */
#define XT_DATADIR_IN_USE 1009
/** No setting of that name. */
#define XT_UNKNOWN_SETTING 1010
/** The setting cannot be changed while the engine runs. */
#define XT_SETTING_READ_ONLY 1011
/** The value is outside the setting's range or not of its type. */
#define XT_SETTING_RANGE 1012
/** A row callback asked to stop. */
#define XT_CANCELLED 1013
/** The caller's buffer is too small; the needed size has been stored. */
#define XT_BUFFER_SHORT 1014
/** No prepared transaction has this XID. */
#define XT_XID_UNKNOWN 1015
/** The collation id is unknown to the host. */
#define XT_COLLATION_UNKNOWN 1016
/** table_optimize: rebuild the table instead (HA_ADMIN_TRY_ALTER). */
#define XT_TRY_ALTER 1017

#ifdef __cplusplus
}
#endif

#endif /* XTRADB_STATUS_H */
