/* Tokens of the SQL subset. */
#ifndef XTRADB_HOST_LEXER_H
#define XTRADB_HOST_LEXER_H

#include "mem.h"

enum token_kind {
    T_END,
    T_WORD,    /* identifier or keyword, as written */
    T_QUOTED,  /* `identifier`, decoded */
    T_STRING,  /* '…' or "…", decoded; adjacent ones joined */
    T_INTEGER,
    T_DECIMAL, /* digits with a point */
    T_FLOAT,   /* with an exponent */
    T_HEX,     /* 0x… or x'…': bytes */
    T_BITS,    /* 0b… or b'…': bytes */
    T_USER_VAR, /* @name */
    T_SYS_VAR,  /* @@name or @@scope.name */
    T_OP,       /* text is the operator: one to three characters */
    T_BAD       /* text says what is wrong */
};

struct token {
    enum token_kind kind;
    const char *text; /* NUL-terminated (arena) for all but T_HEX and T_BITS, which may hold 0 */
    size_t len;
    size_t offset;    /* of the first byte in the statement */
    size_t end;       /* just past the last byte */
};

struct lexer {
    const char *sql;
    size_t len, pos;
    int in_version_comment;
    struct arena *arena;
};

void lexer_open(struct lexer *lx, const char *sql, size_t len, struct arena *arena);
void lexer_next(struct lexer *lx, struct token *t);

/* The version that version comments are compared with: 10.11.18. */
enum { HOST_VERSION_ID = 101118 };

#endif
