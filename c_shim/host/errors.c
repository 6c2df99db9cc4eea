/* Error numbers, SQL states and texts as MariaDB has them; the diagnostics area of a session. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"

static const struct error_text {
    unsigned code;
    const char *state, *format;
} texts[] = {
    {167, "22003", "Out of range value for column '%s' at row 1"},
    {1005, "HY000", "Can't create table `%s`.`%s` (errno: %d \"%s\")"},
    {1006, "HY000", "Can't create database '%s' (errno: %d \"%s\")"},
    {1007, "HY000", "Can't create database '%s'; database exists"},
    {1008, "HY000", "Can't drop database '%s'; database doesn't exist"},
    {1010, "HY000", "Error dropping database (can't rmdir '%s', errno: %d \"%s\")"},
    {1017, "HY000", "Can't find file: '%s' (errno: %d \"%s\")"},
    {1020, "HY000", "Record has changed since last read in table '%s'"},
    {1022, "23000", "Can't write; duplicate key in table '%s'"},
    {1025, "HY000", "Error on rename of '%s' to '%s' (errno: %d \"%s\")"},
    {1030, "HY000", "Got error %d \"%s\" from storage engine %s"},
    {1031, "HY000", "Storage engine %s of the table `%s`.`%s` doesn't have this option"},
    {1032, "HY000", "Can't find record in '%s'"},
    {1033, "HY000", "Incorrect information in file: '%s'"},
    {1034, "HY000", "Index for table '%s' is corrupt; try to repair it"},
    {1036, "HY000", "Table '%s' is read only"},
    {1041, "HY000", "Out of memory."},
    {1044, "42000", "Access denied for user '%s'@'%s' to database '%s'"},
    {1046, "3D000", "No database selected"},
    {1048, "23000", "Column '%s' cannot be null"},
    {1049, "42000", "Unknown database '%s'"},
    {1050, "42S01", "Table '%s' already exists"},
    {1051, "42S02", "Unknown table '%s'"},
    {1054, "42S22", "Unknown column '%s' in '%s'"},
    {1059, "42000", "Identifier name '%s' is too long"},
    {1060, "42S21", "Duplicate column name '%s'"},
    {1061, "42000", "Duplicate key name '%s'"},
    {1062, "23000", "Duplicate entry '%s' for key '%s'"},
    {1063, "42000", "Incorrect column specifier for column '%s'"},
    {1064, "42000",
     "You have an error in your SQL syntax; check the manual that corresponds to your MariaDB server "
     "version for the right syntax to use near '%s' at line %u"},
    {1065, "42000", "Query was empty"},
    {1067, "42000", "Invalid default value for '%s'"},
    {1068, "42000", "Multiple primary key defined"},
    {1069, "42000", "Too many keys specified; max %d keys allowed"},
    {1070, "42000", "Too many key parts specified; max %d parts allowed"},
    {1071, "42000", "Specified key was too long; max key length is %d bytes"},
    {1072, "42000", "Key column '%s' doesn't exist in table"},
    {1074, "42000",
     "Column length too big for column '%s' (max = %lu); use BLOB or TEXT instead"},
    {1075, "42000",
     "Incorrect table definition; there can be only one auto column and it must be defined as a key"},
    {1089, "HY000",
     "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key "
     "part, or the storage engine doesn't support unique prefix keys"},
    {1091, "42000", "Can't DROP INDEX `%s`; check that it exists"},
    {1094, "HY000", "Unknown thread id: %lu"},
    {1099, "HY000", "Table '%s' was locked with a READ lock and can't be updated"},
    {1100, "HY000", "Table '%s' was not locked with LOCK TABLES"},
    {1102, "42000", "Incorrect database name '%s'"},
    {1103, "42000", "Incorrect table name '%s'"},
    {1109, "42S02", "Unknown table '%s' in %s"},
    {1110, "42000", "Column '%s' specified twice"},
    {1111, "HY000", "Invalid use of group function"},
    {1112, "42000", "Table '%s' uses an extension that doesn't exist in this MariaDB version"},
    {1113, "42000", "A table must have at least 1 column"},
    {1114, "HY000", "The table '%s' is full"},
    {1115, "42000", "Unknown character set: '%s'"},
    {1117, "HY000", "Too many columns"},
    {1118, "42000",
     "Row size too large. The maximum row size for the used table type, not counting BLOBs, is %ld. "
     "This includes storage overhead, check the manual. You have to change some columns to TEXT or "
     "BLOBs"},
    {1124, "HY000", "No paths allowed for shared library"},
    {1125, "HY000", "Function '%s' already exists"},
    {1126, "HY000", "Can't open shared library '%s' (errno: %d, %s)"},
    {1127, "HY000", "Can't find symbol '%s' in library"},
    {1136, "21S01", "Column count doesn't match value count at row %lu"},
    {1146, "42S02", "Table '%s.%s' doesn't exist"},
    {1166, "42000", "Incorrect column name '%s'"},
    {1170, "42000", "BLOB/TEXT column '%s' used in key specification without a key length"},
    {1171, "42000",
     "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead"},
    {1176, "42000", "Key '%s' doesn't exist in table '%s'"},
    {1180, "HY000", "Got error %d \"%s\" during COMMIT"},
    {1192, "HY000",
     "Can't execute the given command because you have active locked tables or an active transaction"},
    {1193, "HY000", "Unknown system variable '%s'"},
    {1194, "HY000", "Table '%s' is marked as crashed and should be repaired"},
    {1205, "HY000", "Lock wait timeout exceeded; try restarting transaction"},
    {1206, "HY000", "The total number of locks exceeds the lock table size"},
    {1213, "40001", "Deadlock found when trying to get lock; try restarting transaction"},
    {1228, "HY000", "Variable '%s' is a SESSION variable and can't be used with SET GLOBAL"},
    {1229, "HY000", "Variable '%s' is a GLOBAL variable and should be set with SET GLOBAL"},
    {1231, "42000", "Variable '%s' can't be set to the value of '%s'"},
    {1232, "42000", "Incorrect argument type to variable '%s'"},
    {1235, "42000", "This version of MariaDB doesn't yet support '%s'"},
    {1238, "HY000", "Variable '%s' is a %s variable"},
    {1253, "42000", "COLLATION '%s' is not valid for CHARACTER SET '%s'"},
    {1264, "22003", "Out of range value for column '%s' at row %lu"},
    {1265, "01000", "Data truncated for column '%s' at row %lu"},
    {1273, "HY000", "Unknown collation: '%s'"},
    {1280, "42000", "Incorrect index name '%s'"},
    {1286, "42000", "Unknown storage engine '%s'"},
    {1291, "HY000", "Column '%s' has duplicated value '%s' in %s"},
    {1292, "22007", "Incorrect %s value: '%s' for column `%s`.`%s`.`%s` at row %lu"},
    {1296, "HY000", "Got error %d '%s' from %s"},
    {1298, "HY000", "Unknown or incorrect time zone: '%s'"},
    {1305, "42000", "%s %s does not exist"},
    {1317, "70100", "Query execution was interrupted"},
    {1364, "HY000", "Field '%s' doesn't have a default value"},
    {1365, "22012", "Division by 0"},
    {1366, "22007", "Incorrect %s value: '%s' for column `%s`.`%s`.`%s` at row %lu"},
    {1391, "HY000", "Key part '%s' length cannot be 0"},
    {1406, "22001", "Data too long for column '%s' at row %lu"},
    {1412, "HY000", "Table definition has changed, please retry transaction"},
    {1425, "42000", "Too big scale specified for '%s'. Maximum is %u"},
    {1426, "42000", "Too big precision specified for '%s'. Maximum is %u"},
    {1427, "42000",
     "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '%s')"},
    {1436, "HY000", "Thread stack overrun: the expression is nested too deep"},
    {1439, "42000", "Display width out of range for '%s' (max = %lu)"},
    {1459, "HY000",
     "Table upgrade required. Please do \"REPAIR TABLE `%s`\" or dump/reload to fix it!"},
    {1467, "HY000", "Failed to read auto-increment value from storage engine"},
    {1478, "HY000", "Table storage engine '%s' does not support the create option '%s'"},
    {1525, "HY000", "Incorrect %s value: '%s'"},
    {1568, "25001",
     "Transaction characteristics can't be changed while a transaction is in progress"},
    {1582, "42000", "Incorrect parameter count in the call to native function '%s'"},
    {1619, "HY000", "Built-in plugins cannot be deleted"},
    {1620, "HY000", "Plugin is busy and will be uninstalled on shutdown"},
    {1637, "HY000", "Too many active concurrent transactions"},
    {1665, "HY000", "Cannot execute statement: impossible to write to binary log"},
    {1690, "22003", "%s value is out of range in '%s'"},
    {1702, "HY000", "Plugin '%s' is force_plus_permanent and can not be unloaded"},
    {1709, "HY000", "Index column size too large. The maximum column size is %lu bytes"},
    {1712, "HY000", "Index %s is corrupted"},
    {1713, "HY000", "Undo log record is too big"},
    {1792, "25006", "Cannot execute statement in a READ ONLY transaction"},
    {1813, "HY000",
     "Tablespace for table '`%s`.`%s`' exists. Please DISCARD the tablespace before IMPORT"},
    {1932, "42S02", "Table '%s.%s' doesn't exist in engine"},
    {1968, "HY000", "Plugin '%s' already installed"},
    {4161, "HY000", "Unknown data type: '%s'"},
    {4025, "23000", "CONSTRAINT `%s.%s` failed for `%s`.`%s`"},
};

static const struct error_text *text_of(unsigned code)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].code == code)
            return &texts[i];
    return NULL;
}

const char *sql_state(unsigned code)
{
    const struct error_text *t = text_of(code);
    return t ? t->state : "HY000";
}

enum { CONDITIONS_MAX = 64 };

static void add_condition(session *s, enum level level, unsigned code, const char *text)
{
    struct diagnostics *d = &s->diag;
    d->count++;
    if (d->kept >= CONDITIONS_MAX)
        return;
    d->list = mem_realloc(d->list, (d->kept + 1) * sizeof *d->list);
    d->list[d->kept++] = (struct condition){(uint8_t)level, code, mem_strdup(text)};
}

void diag_reset(session *s)
{
    for (uint32_t i = 0; i < s->diag.kept; i++)
        free(s->diag.list[i].text);
    s->diag.kept = s->diag.count = 0;
    s->diag.error = 0;
    s->diag.engine_text[0] = 0;
}

void diag_free(session *s)
{
    diag_reset(s);
    free(s->diag.list);
    s->diag.list = NULL;
}

static void format_text(char *out, size_t size, unsigned code, va_list args)
{
    const struct error_text *t = text_of(code);
    if (t)
        vsnprintf(out, size, t->format, args);
    else
        snprintf(out, size, "Error %u", code);
}

unsigned sql_error_text(session *s, unsigned code, const char *text)
{
    if (s->diag.error)
        return s->diag.error; /* the first one tells */
    s->diag.error = code;
    snprintf(s->diag.error_text, sizeof s->diag.error_text, "%s", text);
    add_condition(s, LEVEL_ERROR, code, text);
    return code;
}

unsigned sql_verror(session *s, unsigned code, va_list args)
{
    char text[512];
    format_text(text, sizeof text, code, args);
    return sql_error_text(s, code, text);
}

unsigned sql_error(session *s, unsigned code, ...)
{
    va_list args;
    va_start(args, code);
    sql_verror(s, code, args);
    va_end(args);
    return s->diag.error;
}

void sql_warning(session *s, unsigned code, ...)
{
    char text[512];
    va_list args;
    va_start(args, code);
    format_text(text, sizeof text, code, args);
    va_end(args);
    add_condition(s, LEVEL_WARNING, code, text);
}

void sql_note(session *s, unsigned code, ...)
{
    char text[512];
    va_list args;
    va_start(args, code);
    format_text(text, sizeof text, code, args);
    va_end(args);
    add_condition(s, LEVEL_NOTE, code, text);
}

void sql_condition_text(session *s, enum level level, unsigned code, const char *text)
{
    add_condition(s, level, code, text);
}

void sql_engine_message(session *s, const char *text)
{
    snprintf(s->diag.engine_text, sizeof s->diag.engine_text, "%s", text);
}

static unsigned duplicate_error(session *s, const table_def *def, se_table *t)
{
    uint32_t key = t && t->eng->ops->error_key ? t->eng->ops->error_key(t) : NO_KEY;
    if (key == NO_KEY || !def || key >= def->key_count)
        return sql_error(s, 1022, def ? def->name : "?");
    return 1062; /* the writer has the row and says which entry */
}

static const char *engine_text(const session *s, int rc)
{
    if (s->diag.engine_text[0])
        return s->diag.engine_text;
    switch (rc) {
    case SE_UNSUPPORTED: return "Unsupported operation";
    case SE_INTERNAL: return "Internal error";
    case SE_TABLESPACE_MISSING: return "Tablespace is missing for a table";
    case SE_GENERIC: return "Generic error";
    default: return "Unknown error";
    }
}

/* Errors that say nothing of a table. */
static unsigned plain_error(session *s, int rc)
{
    switch (rc) {
    case SE_LOCK_WAIT_TIMEOUT: return sql_error(s, 1205);
    case SE_ABORTED_BY_USER: return sql_error(s, 1317);
    case SE_OUT_OF_MEM: return sql_error(s, 1041);
    case SE_AUTOINC_READ_FAILED: return sql_error(s, 1467);
    case SE_TABLE_DEF_CHANGED: return sql_error(s, 1412);
    case SE_TOO_MANY_TRXS: return sql_error(s, 1637);
    case SE_UNDO_REC_TOO_BIG: return sql_error(s, 1713);
    case SE_INDEX_COL_TOO_LONG: return sql_error(s, 1709, 3072UL);
    case SE_TO_BIG_ROW: return sql_error(s, 1118, 8126L);
    default: return 0;
    }
}

/* An engine's text, when it gave one, tells more than the table name alone. */
static unsigned damaged(session *s, unsigned code, const char *name)
{
    char text[512];
    if (!s->diag.engine_text[0])
        return sql_error(s, code, name);
    snprintf(text, sizeof text, "Table '%.100s' is marked as crashed and should be repaired: %.300s", name,
             s->diag.engine_text);
    return sql_error_text(s, code, text);
}

static unsigned full(session *s, const char *name)
{
    char text[512];
    if (!s->diag.engine_text[0])
        return sql_error(s, 1114, name);
    snprintf(text, sizeof text, "The table '%.100s' is full: %.350s", name, s->diag.engine_text);
    return sql_error_text(s, 1114, text);
}

unsigned se_error(session *s, int rc, const table_def *def, se_table *t)
{
    const char *name = def ? def->name : "?", *db = def ? def->db : "?";
    const char *engine_name = def ? def->engine_name : "?";
    unsigned code = plain_error(s, rc);
    if (code)
        return code;
    switch (rc) {
    case SE_OK: return 0;
    case SE_AUTOINC_ERANGE:
        return sql_error(s, 167, def && def->autoinc_col < def->column_count
                                     ? def->columns[def->autoinc_col].name : "?");
    case SE_FOUND_DUPP_KEY: return duplicate_error(s, def, t);
    case SE_LOCK_DEADLOCK: code = sql_error(s, 1213); break;
    case SE_LOCK_TABLE_FULL: code = sql_error(s, 1206); break;
    case SE_RECORD_CHANGED: code = sql_error(s, 1020, name); break;
    case SE_ROLLBACK: code = sql_error_text(s, 4060, "The transaction was rolled back"); break;
    case SE_KEY_NOT_FOUND:
    case SE_NO_ACTIVE_RECORD:
    case SE_END_OF_FILE: return sql_error(s, 1032, name);
    case SE_CRASHED:
    case SE_TABLE_CORRUPT: return damaged(s, 1194, name);
    case SE_INDEX_CORRUPT: return sql_error(s, 1712, name);
    case SE_RECORD_FILE_FULL: return full(s, name);
    case SE_TABLE_READONLY: return sql_error(s, 1036, name);
    case SE_NO_SUCH_TABLE: return sql_error(s, 1932, db, name);
    case SE_TABLE_EXIST: return sql_error(s, 1050, name);
    case SE_TABLESPACE_EXISTS: return sql_error(s, 1813, db, name);
    case SE_WRONG_COMMAND: return sql_error(s, 1031, engine_name, db, name);
    case SE_TABLE_NEEDS_UPGRADE: return sql_error(s, 1459, name);
    case SE_TABLESPACE_MISSING:
    case SE_DECRYPTION_FAILED: return sql_error(s, 1296, rc, engine_text(s, rc), engine_name);
    default: return sql_error(s, 1030, rc, engine_text(s, rc), engine_name);
    }
    transaction_aborted(s);
    return code;
}
